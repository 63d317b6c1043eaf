package discovery

import (
	"fmt"
	"math"
	"time"

	hqv1 "example.com/hq/hqpb/v1"
)

// Source says where a list comes from.
type Source int

// What a list may come from.
const (
	None  Source = iota // nothing is known yet
	Saved               // the file of an earlier process; HQ has not answered since
	Kept                // the last good list: HQ is away, or sends a new snapshot
	Live                // a watch that stands
)

func (s Source) String() string { return [...]string{"none", "saved", "kept", "live"}[s] }

// location is one cluster's part of the list: with a single HQ there is one, a gateway has several.
type location struct {
	list map[string]instance
	// building is the snapshot that is coming; nil: none is expected, list is complete.
	building map[string]instance
	away     bool // only a gateway says so: it cannot reach the location
	believed string
	doubted  string // the epoch that is not trusted yet
	since    time.Time
	why      string
	// unconfirmed instances are kept though HQ does not show them.
	unconfirmed map[string]bool
}

// roster is the list that the messages of successive watches add up to. No I/O; not safe for concurrent use.
type roster struct {
	believeAfter time.Duration
	locations    map[string]*location
	token        string // of the last complete version
	pending      []*hqv1.WatchEvent
	source       Source
	sourceStale  bool
	asOf         time.Time // the list was complete then; zero: unknown
	resyncs      int
}

func newRoster(believeAfter time.Duration) *roster {
	return &roster{believeAfter: believeAfter, locations: map[string]*location{}}
}

func (r *roster) at(cluster string) *location {
	found := r.locations[cluster]
	if found == nil {
		found = &location{list: map[string]instance{}, building: map[string]instance{}, unconfirmed: map[string]bool{}}
		r.locations[cluster] = found
	}
	return found
}

// whole: no snapshot is under way, except of locations that are away.
func (r *roster) whole() bool {
	for _, each := range r.locations {
		if each.building != nil && !each.away {
			return false
		}
	}
	return len(r.locations) > 0
}

// savedToken is the token that belongs to exactly this list; empty: a later process starts from a snapshot.
func (r *roster) savedToken() string {
	for _, each := range r.locations {
		if len(each.unconfirmed) > 0 || each.building != nil {
			return ""
		}
	}
	return r.token
}

// startOver forgets the token; lists serve until their snapshots are complete.
func (r *roster) startOver() {
	r.token, r.pending = "", nil
	for _, each := range r.locations {
		each.building = map[string]instance{}
	}
	if r.source != None {
		r.resyncs++
	}
	r.loseTouch()
}

// streamEnded drops what the stream left incomplete.
func (r *roster) streamEnded() {
	r.pending = nil
	for _, each := range r.locations {
		if each.building != nil {
			each.building = map[string]instance{}
		}
	}
	r.loseTouch()
}

func (r *roster) loseTouch() {
	if r.source == Live {
		r.source = Kept
	}
}

// apply takes a message in and returns what it may have changed of the list. Kinds that it does not know are ignored.
func (r *roster) apply(message *hqv1.WatchInstancesResponse, now time.Time) changes {
	switch message.GetKind() {
	case hqv1.WatchKind_WATCH_KIND_SNAPSHOT:
		r.snapshot(message)
	case hqv1.WatchKind_WATCH_KIND_SYNCED:
		return r.synced(message, now)
	case hqv1.WatchKind_WATCH_KIND_EVENTS:
		return r.events(message, now)
	case hqv1.WatchKind_WATCH_KIND_BOOKMARK:
		return r.bookmark(message, now)
	case hqv1.WatchKind_WATCH_KIND_RESYNC:
		r.resync(message)
	}
	return changes{}
}

func clusterOf(message *hqv1.WatchInstancesResponse) string {
	if sources := message.GetSources(); len(sources) == 1 {
		return sources[0].GetCluster()
	}
	return ""
}

func (r *roster) snapshot(message *hqv1.WatchInstancesResponse) {
	found := r.at(clusterOf(message))
	found.away = false
	if found.building == nil { // a snapshot that nobody announced: it replaces the list, and the token is void
		r.startOver()
	}
	for _, event := range message.GetEvents() {
		if kept, ok := readyInstance(event.GetPut()); ok {
			found.building[kept.ID] = kept
		}
	}
}

func (r *roster) synced(message *hqv1.WatchInstancesResponse, now time.Time) changes {
	r.move(message)
	changed := false
	for _, source := range message.GetSources() {
		found := r.at(source.GetCluster())
		if found.building == nil {
			continue // a watch that was resumed: what was missed is still to come
		}
		r.commit(found, source, now)
		changed = true
		if isAway(source) { // the gateway knows that location no longer
			delete(r.locations, source.GetCluster())
		}
	}
	if changed {
		r.confirm(message.GetSources(), now)
	}
	return changes{all: changed}
}

// commit replaces a location's list by its snapshot, but keeps instances that a store may have lost.
func (r *roster) commit(found *location, source *hqv1.Source, now time.Time) {
	fresh := found.building
	missing := map[string]bool{}
	for id := range found.list {
		if _, ok := fresh[id]; !ok {
			missing[id] = true
		}
	}
	isDoubted := found.doubts(source, len(fresh), now, r.believeAfter) && len(missing) > 0
	if (source.GetError() == "" || isAway(source)) && !isDoubted {
		clear(missing)
	}
	for id := range missing {
		fresh[id] = found.list[id]
	}
	found.list, found.building, found.unconfirmed = fresh, nil, missing
}

func (r *roster) events(message *hqv1.WatchInstancesResponse, now time.Time) changes {
	r.pending = append(r.pending, message.GetEvents()...)
	if message.GetResumeToken() == "" {
		return changes{}
	}
	of := make([]instanceRef, len(r.pending))
	for at, event := range r.pending {
		of[at] = r.applyEvent(event)
	}
	r.pending = nil
	r.move(message)
	r.confirm(message.GetSources(), now)
	return changes{all: r.release(message.GetSources(), now), of: of}
}

// applyEvent returns which instance the event is about.
func (r *roster) applyEvent(event *hqv1.WatchEvent) instanceRef {
	gone := event.GetLeft()
	if gone == nil {
		gone = event.GetDelete()
	}
	if gone == nil {
		meta := event.GetPut().GetMeta()
		found := r.at(meta.GetCluster())
		delete(found.unconfirmed, meta.GetId())
		if kept, ok := readyInstance(event.GetPut()); ok {
			found.list[kept.ID] = kept
			return instanceRef{meta.GetCluster(), kept.ID}
		}
		gone = &hqv1.InstanceRef{Id: meta.GetId(), Cluster: meta.GetCluster()}
	}
	if found := r.locations[gone.GetCluster()]; found != nil {
		delete(found.list, gone.GetId())
		delete(found.unconfirmed, gone.GetId())
	}
	return instanceRef{gone.GetCluster(), gone.GetId()}
}

// instance of the list; one without anything: it is not in it.
func (r *roster) instance(of instanceRef) instance {
	if found := r.locations[of.cluster]; found != nil {
		return found.list[of.id]
	}
	return instance{}
}

func (r *roster) bookmark(message *hqv1.WatchInstancesResponse, now time.Time) changes {
	for _, source := range message.GetSources() {
		r.at(source.GetCluster()).away = isAway(source)
	}
	r.move(message)
	r.confirm(message.GetSources(), now)
	return changes{all: r.release(message.GetSources(), now)}
}

func (r *roster) resync(message *hqv1.WatchInstancesResponse) {
	cluster := clusterOf(message)
	if cluster == "" {
		r.startOver()
		return
	}
	r.at(cluster).building = map[string]instance{}
	// A gateway's RESYNC brings a token without that location; one of a single HQ brings none.
	r.token, r.pending = message.GetResumeToken(), nil
	r.resyncs++
	r.loseTouch()
}

func (r *roster) move(message *hqv1.WatchInstancesResponse) {
	if token := message.GetResumeToken(); token != "" {
		r.token = token
	}
}

func (r *roster) confirm(sources []*hqv1.Source, now time.Time) {
	staleness := time.Duration(0)
	r.sourceStale = false
	for _, source := range sources {
		staleness = max(staleness, source.GetStaleness().AsDuration())
		r.sourceStale = r.sourceStale || source.GetStale() || source.GetError() != ""
		if found := r.locations[source.GetCluster()]; found != nil && source.GetReplica() != "" {
			found.away = false
		}
	}
	for _, each := range r.locations {
		r.sourceStale = r.sourceStale || each.away
	}
	if r.whole() {
		r.source, r.asOf = Live, now.Add(-staleness)
	}
}

// release drops instances that a location did not confirm, when it is back and complete, or trusted again.
func (r *roster) release(sources []*hqv1.Source, now time.Time) bool {
	changed := false
	for _, source := range sources {
		found := r.locations[source.GetCluster()]
		doubted := source.GetTrust() == hqv1.EpochTrust_EPOCH_TRUST_DOUBTED
		if found == nil || !found.believes(source, now, r.believeAfter) || (source.GetError() != "" && !doubted) {
			continue
		}
		for id := range found.unconfirmed {
			delete(found.list, id)
			changed = true
		}
		clear(found.unconfirmed)
	}
	return changed
}

// doubts: a snapshot of another epoch that has far less, or that HQ itself doubts, is not believed yet.
func (l *location) doubts(source *hqv1.Source, count int, now time.Time, believeAfter time.Duration) bool {
	if source.GetEpoch() == "" { // a location that cannot be reached
		return false
	}
	isOther := l.believed != "" && l.believed != source.GetEpoch()
	isConfirmed := source.GetTrust() == hqv1.EpochTrust_EPOCH_TRUST_CONFIRMED
	isDoubted := source.GetTrust() == hqv1.EpochTrust_EPOCH_TRUST_DOUBTED
	isKnown := l.doubted == source.GetEpoch()
	isOver := isKnown && now.Sub(l.since) >= believeAfter
	if !isOther || isConfirmed || isOver || (!isDoubted && count*2 >= len(l.list)) {
		l.believe(source)
		return false
	}
	if !isKnown {
		l.doubted, l.since = source.GetEpoch(), now
	}
	l.why = source.GetError()
	if l.why == "" {
		l.why = fmt.Sprintf("its store was replaced and has %d instances, previously %d", count, len(l.list))
	}
	return true
}

func (l *location) believes(source *hqv1.Source, now time.Time, believeAfter time.Duration) bool {
	if l.doubted == "" {
		return true
	}
	isConfirmed := source.GetTrust() == hqv1.EpochTrust_EPOCH_TRUST_CONFIRMED
	if source.GetEpoch() == "" || (!isConfirmed && now.Sub(l.since) < believeAfter) {
		return false
	}
	l.believe(source)
	return true
}

func (l *location) believe(source *hqv1.Source) {
	l.believed, l.doubted, l.why = source.GetEpoch(), "", ""
}

func (r *roster) doubt() string {
	for name, each := range r.locations {
		if each.doubted != "" {
			return name + ": " + each.why
		}
	}
	return ""
}

// age of the list; infinite: unknown, or there is none.
func (r *roster) age(now time.Time) time.Duration {
	if r.asOf.IsZero() {
		return time.Duration(math.MaxInt64)
	}
	return max(0, now.Sub(r.asOf))
}

func isAway(source *hqv1.Source) bool { return source.GetError() != "" && source.GetReplica() == "" }
