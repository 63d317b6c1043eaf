package discovery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	hqv1 "example.com/hq/hqpb/v1"
)

func TestListOfFewChangesIsThatOfAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRoster(time.Hour)
	synced := &hqv1.WatchInstancesResponse{Kind: hqv1.WatchKind_WATCH_KIND_SYNCED, ResumeToken: "0", Sources: sources}
	r.at("c").building = map[string]instance{}
	r.apply(synced, time.Now())
	list := endpointList{service: "web", port: "grpc"}
	list.update(r, changes{all: true})
	for step := range 5_000 {
		events := []*hqv1.WatchEvent{}
		for range 1 + rng.IntN(3) {
			events = append(events, anyEvent(rng))
		}
		before := slices.Clone(list.sorted)
		changed := r.apply(&hqv1.WatchInstancesResponse{
			Kind: hqv1.WatchKind_WATCH_KIND_EVENTS, ResumeToken: "1", Events: events, Sources: sources,
		}, time.Now())
		if changed.all {
			t.Fatal("three events are taken in one by one")
		}
		isOther := list.update(r, changed)
		if whole := list.all(r); !slices.EqualFunc(whole, list.sorted, Endpoint.equal) {
			t.Fatalf("step %d: %v, should be %v", step, list.sorted, whole)
		}
		if !isOther && !slices.EqualFunc(before, list.sorted, Endpoint.equal) {
			t.Fatalf("step %d: the list changed, and that was not said", step)
		}
	}
}

// anyEvent is of one of ten instances: ready at one of three ports, not ready, without the port, or gone.
func anyEvent(rng *rand.Rand) *hqv1.WatchEvent {
	id := fmt.Sprint("web-", rng.IntN(10))
	event := put(id, uint32(1+rng.IntN(3)))
	switch rng.IntN(5) {
	case 0:
		event.GetPut().Status = nil
	case 1:
		event.GetPut().Spec.Allocation.Port = nil
	case 2:
		gone := &hqv1.InstanceRef{Id: id, Cluster: "c"}
		return &hqv1.WatchEvent{Change: &hqv1.WatchEvent_Left{Left: gone}}
	}
	return event
}

func TestRepeatedPutIsNoChange(t *testing.T) {
	r := newRoster(time.Hour)
	r.at("c")
	list := endpointList{service: "web", port: "grpc"}
	for _, isOther := range []bool{true, false} {
		of := []instanceRef{r.applyEvent(put("web-1", 1))}
		if list.update(r, changes{of: of}) != isOther {
			t.Fatalf("changed: %v", !isOther)
		}
	}
}
