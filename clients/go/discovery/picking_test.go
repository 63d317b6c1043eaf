package discovery

import (
	"encoding/json"
	"maps"
	"testing"
)

func weighed(weights ...uint32) []Endpoint {
	made := []Endpoint{}
	for number, weight := range weights {
		made = append(made, Endpoint{InstanceID: string(rune('a' + number)), Weight: weight})
	}
	return made
}

func TestPickIsByWeight(t *testing.T) {
	for name, of := range map[string]struct {
		endpoints []Endpoint
		total     uint64
		want      map[string]int
	}{
		"equal":             {weighed(100, 100), 200, map[string]int{"a": 100, "b": 100}},
		"a canary":          {weighed(1, 99), 100, map[string]int{"a": 1, "b": 99}},
		"one at rest":       {weighed(0, 5, 5), 10, map[string]int{"b": 5, "c": 5}},
		"all are at rest":   {weighed(0, 0), 2, map[string]int{"a": 1, "b": 1}},
		"none to pick from": {nil, 1, map[string]int{"": 1}},
	} {
		got := map[string]int{}
		for at := range of.total {
			picked, _ := pick(of.endpoints, func(bound uint64) uint64 {
				if bound != of.total {
					t.Errorf("%s: drawn below %d, not %d", name, bound, of.total)
				}
				return at
			})
			got[picked.InstanceID]++
		}
		if !maps.Equal(got, of.want) {
			t.Errorf("%s: %v, not %v", name, got, of.want)
		}
	}
}

func TestWhoIsAtRestIsLeftOutUnlessAllAre(t *testing.T) {
	if got := WithTraffic(weighed(0, 7)); len(got) != 1 || got[0].InstanceID != "b" {
		t.Errorf("%v", got)
	}
	if got := WithTraffic(weighed(0, 0)); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestWeightIsReadSavedAndTheUsualOneWhereNothingIsSaid(t *testing.T) {
	for _, of := range []struct{ weight, want *uint32 }{{nil, ref(100)}, {ref(0), ref(0)}, {ref(70), ref(70)}} {
		message := put("web-1", 80).GetPut()
		message.Spec.Weight = of.weight
		read, _ := readyInstance(message)
		text, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		var saved instance
		if err := json.Unmarshal(text, &saved); err != nil {
			t.Fatal(err)
		}
		for _, each := range []instance{read, saved} {
			if endpoint, _ := each.endpoint("c", "web", "grpc"); endpoint.Weight != *of.want {
				t.Errorf("%d, not %d", endpoint.Weight, *of.want)
			}
		}
	}
	usual, heavy := Endpoint{Weight: 100}, Endpoint{Weight: 200}
	if usual.equal(heavy) {
		t.Error("a change of weight is no change")
	}
}

func ref(number uint32) *uint32 { return &number }
