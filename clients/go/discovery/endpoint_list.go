package discovery

import (
	"cmp"
	"slices"
)

// instanceRef names an instance of a roster.
type instanceRef struct{ cluster, id string }

// changes of a roster: of these instances, or (all) of any.
type changes struct {
	all bool
	of  []instanceRef
}

// fewChanges are taken in one by one, each by moving what comes after it; of more, the list is made and sorted anew.
const fewChanges = 32

// endpointList is what the instances of a roster make at a port, sorted by cluster and instance. Not safe for concurrent
// use.
type endpointList struct {
	service, port string
	sorted        []Endpoint
}

// update takes changes of the roster in; true: the list is another one now.
func (l *endpointList) update(r *roster, changed changes) bool {
	if changed.all || len(changed.of) > fewChanges {
		before := l.sorted
		l.sorted = l.all(r)
		return !slices.EqualFunc(before, l.sorted, Endpoint.equal)
	}
	isOther := false
	for _, each := range changed.of {
		isOther = l.updateOne(r, each) || isOther
	}
	return isOther
}

func (l *endpointList) all(r *roster) []Endpoint {
	made := []Endpoint{}
	for cluster, each := range r.locations {
		for _, found := range each.list {
			if endpoint, ok := found.endpoint(cluster, l.service, l.port); ok {
				made = append(made, endpoint)
			}
		}
	}
	slices.SortFunc(made, func(a, b Endpoint) int { return compare(a, instanceRef{b.Cluster, b.InstanceID}) })
	return made
}

func (l *endpointList) updateOne(r *roster, changed instanceRef) bool {
	at, isListed := slices.BinarySearchFunc(l.sorted, changed, compare)
	endpoint, isReady := r.instance(changed).endpoint(changed.cluster, l.service, l.port)
	switch {
	case isListed && isReady:
		isOther := !endpoint.equal(l.sorted[at])
		l.sorted[at] = endpoint
		return isOther
	case isReady:
		l.sorted = slices.Insert(l.sorted, at, endpoint)
	case isListed:
		l.sorted = slices.Delete(l.sorted, at, at+1)
	}
	return isListed || isReady
}

func compare(a Endpoint, b instanceRef) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.cluster), cmp.Compare(a.InstanceID, b.id))
}
