package discovery

import (
	"maps"
	"net"
	"slices"
	"strconv"

	hqv1 "example.com/hq/hqpb/v1"
)

// Endpoint is where one ready instance of a service is reached.
type Endpoint struct {
	InstanceID string
	Cluster    string
	// UID changes when an instance is created again under the same id.
	UID  uint64
	Node string
	Host string
	Port uint32
	// Revision that is ready; the one wanted READY if two are.
	Revision string
	Labels   map[string]string
	// Weight is its share of new traffic, in proportion to the others' weights; 0: none. See WithTraffic and Pick.
	Weight uint32
}

const usualWeight = 100

// Address is host:port, an IPv6 address in brackets.
func (e Endpoint) Address() string {
	return net.JoinHostPort(e.Host, strconv.FormatUint(uint64(e.Port), 10))
}

func (e Endpoint) equal(o Endpoint) bool {
	return e.InstanceID == o.InstanceID && e.Cluster == o.Cluster && e.UID == o.UID && e.Node == o.Node &&
		e.Host == o.Host && e.Port == o.Port && e.Revision == o.Revision && e.Weight == o.Weight &&
		maps.Equal(e.Labels, o.Labels)
}

// instance is what is kept of a ready instance, and saved: not its version, so that a heartbeat is no change.
type instance struct {
	ID       string            `json:"id"`
	UID      uint64            `json:"uid"`
	Service  string            `json:"service"`
	Node     string            `json:"node"`
	Host     string            `json:"host"`
	Ports    map[string]uint32 `json:"ports"`
	Labels   map[string]string `json:"labels"`
	Revision string            `json:"revision"`
	Weight   *uint32           `json:"weight,omitempty"` // nil: the usual one, also in files of earlier versions
}

func readyInstance(found *hqv1.Instance) (instance, bool) {
	spec, status := found.GetSpec(), found.GetStatus()
	if status.GetReady().GetStatus() != hqv1.ConditionStatus_CONDITION_STATUS_TRUE {
		return instance{}, false
	}
	ports := map[string]uint32{}
	for _, port := range spec.GetAllocation().GetPort() {
		ports[port.GetName()] = port.GetNumber()
	}
	host := spec.GetAllocation().GetHost()
	if host == "" {
		host = spec.GetNodeName()
	}
	meta := found.GetMeta()
	return instance{
		ID: meta.GetId(), UID: meta.GetUid(), Service: meta.GetServiceId(), Node: spec.GetNodeName(), Host: host,
		Ports: ports, Labels: meta.GetLabels(), Revision: readyRevision(found), Weight: spec.Weight,
	}, true
}

func readyRevision(found *hqv1.Instance) string {
	ready := []string{}
	for _, revision := range found.GetStatus().GetRevision() {
		if revision.GetReady().GetStatus() == hqv1.ConditionStatus_CONDITION_STATUS_TRUE {
			ready = append(ready, revision.GetId())
		}
	}
	slices.Sort(ready)
	for _, revision := range found.GetSpec().GetRevision() {
		if revision.GetTarget() == hqv1.RevisionTarget_REVISION_TARGET_READY && slices.Contains(ready, revision.GetId()) {
			return revision.GetId()
		}
	}
	if len(ready) > 0 {
		return ready[0]
	}
	return ""
}

// endpoint is the one that a named port makes; false: there is none.
func (i instance) endpoint(cluster, service, port string) (Endpoint, bool) {
	number, ok := i.Ports[port]
	if !ok || i.Host == "" || i.Service != service {
		return Endpoint{}, false
	}
	weight := uint32(usualWeight)
	if i.Weight != nil {
		weight = *i.Weight
	}
	return Endpoint{
		InstanceID: i.ID, Cluster: cluster, UID: i.UID, Node: i.Node, Host: i.Host, Port: number,
		Revision: i.Revision, Labels: i.Labels, Weight: weight,
	}, true
}
