package discovery

import "math/rand/v2"

// WithTraffic returns the endpoints that take new traffic: those of weight above 0, or all if every weight is 0, as a
// mistake in weights must not be an outage.
func WithTraffic(endpoints []Endpoint) []Endpoint {
	found := make([]Endpoint, 0, len(endpoints))
	for _, each := range endpoints {
		if each.Weight > 0 {
			found = append(found, each)
		}
	}
	if len(found) == 0 {
		return endpoints
	}
	return found
}

// Pick is one of the endpoints, at random and as often as their weights say; false: there is none.
func Pick(endpoints []Endpoint) (Endpoint, bool) { return pick(endpoints, rand.Uint64N) }

// pick is Pick with a source of random numbers: draw returns one below a bound.
func pick(endpoints []Endpoint, draw func(uint64) uint64) (Endpoint, bool) {
	if len(endpoints) == 0 {
		return Endpoint{}, false
	}
	total := uint64(0)
	for _, each := range endpoints {
		total += uint64(each.Weight)
	}
	if total == 0 {
		return endpoints[draw(uint64(len(endpoints)))], true
	}
	at := draw(total)
	for _, each := range endpoints {
		if at < uint64(each.Weight) {
			return each, true
		}
		at -= uint64(each.Weight)
	}
	panic("the drawn number is not below the sum of weights")
}
