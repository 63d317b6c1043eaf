// Package discovery follows the ready endpoints of services in HQ: one watch per service, the list in this process, and
// addresses even while HQ is away.
//
//	found, err := discovery.New(discovery.Config{Servers: []string{"hq-1:7071", "hq-2:7071"}})
//	web := found.Service("web", "http")
//	defer web.Close()
//	err = web.Ready(ctx, 1)
//	for _, endpoint := range web.Endpoints() { fmt.Println(endpoint.Address()) }
package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// Config says where HQ is and how it is followed. Zero times are the defaults.
type Config struct {
	// Servers are host:port of each replica.
	Servers []string
	// StateDir keeps the last good lists, for restarts while HQ is away; empty: nowhere.
	StateDir    string
	Credentials Credentials
	DialOptions []grpc.DialOption

	// SilenceLimit: a stream without a message for so long is left for another replica (12 s).
	SilenceLimit time.Duration
	// StaleAfter: after so long without a message the list is called stale (6 s).
	StaleAfter time.Duration
	// ConnectTimeout: a replica must accept a connection within this (2 s).
	ConnectTimeout time.Duration
	// MaxBackoff: upper limit of the waits between streams (10 s).
	MaxBackoff time.Duration
	// RefusedWait: about how long to wait after a refusal (5 s).
	RefusedWait time.Duration
	// SaveAfter: a change is in the file after so long (1 s).
	SaveAfter time.Duration
	// BelieveAfter: instances that a replaced store lacks are kept for so long at most (1 h).
	BelieveAfter time.Duration
	// RenewEvery: about how often to start over from a snapshot, so that whatever was lost is found (30 min).
	RenewEvery time.Duration
	Logger     *slog.Logger
}

const saveEvery = time.Minute

func orDefault(value *time.Duration, otherwise time.Duration) {
	if *value == 0 {
		*value = otherwise
	}
}

// Discovery makes handles of services. It has no connections of its own.
type Discovery struct {
	config   Config
	identity *identity
}

// New checks the configuration; it connects to nothing.
func New(config Config) (*Discovery, error) {
	if len(config.Servers) == 0 {
		return nil, errors.New("give the address of at least one replica, e.g. 127.0.0.1:7071")
	}
	if err := config.Credentials.check(config.Servers); err != nil {
		return nil, err
	}
	orDefault(&config.SilenceLimit, 12*time.Second)
	orDefault(&config.StaleAfter, 6*time.Second)
	orDefault(&config.ConnectTimeout, 2*time.Second)
	orDefault(&config.MaxBackoff, 10*time.Second)
	orDefault(&config.RefusedWait, 5*time.Second)
	orDefault(&config.SaveAfter, time.Second)
	orDefault(&config.BelieveAfter, time.Hour)
	orDefault(&config.RenewEvery, 30*time.Minute)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	identity, err := newIdentity(config.Credentials)
	if err != nil {
		return nil, err
	}
	return &Discovery{config: config, identity: identity}, nil
}

// Service follows the ready instances of a service at a named port, until it is closed.
type Service struct {
	name, port string
	config     Config
	identity   *identity
	path       string
	end        context.CancelFunc
	tasks      sync.WaitGroup

	mutex     sync.Mutex // guards what follows
	roster    *roster
	endpoints endpointList
	heardAt   time.Time
	err       error
	moved     chan struct{} // closed at the next change of anything
	dirty     bool
	savedAt   time.Time
	callbacks map[int]func([]Endpoint)
	callback  sync.Mutex // callbacks run one after the other
	next      int
}

// Status says how well a list is known.
type Status struct {
	// Known: there is a list, maybe an empty one.
	Known  bool
	Source Source
	// Stale: it may be out of date: HQ is away or silent, or says so itself.
	Stale bool
	// Age: the list was complete so long ago; the largest duration: unknown.
	Age time.Duration
	// Err says why HQ cannot be followed at the moment; nil: it can.
	Err error
	// Doubt says why endpoints are kept that HQ no longer shows; empty: there are none.
	Doubt string
	// Resyncs counts how often continuity was lost.
	Resyncs int
}

// Service starts to follow a service. Close it when done.
func (d *Discovery) Service(name, port string) *Service {
	ctx, end := context.WithCancel(context.Background())
	s := &Service{
		name: name, port: port, config: d.config, identity: d.identity, end: end,
		roster: newRoster(d.config.BelieveAfter), endpoints: endpointList{service: name, port: port}, heardAt: time.Now(), savedAt: time.Now(),
		moved: make(chan struct{}), callbacks: map[int]func([]Endpoint){},
	}
	if d.config.StateDir != "" {
		s.path = stateFile(d.config.StateDir, name)
		s.restore()
		s.tasks.Add(1)
		go s.keepSaving(ctx)
	}
	s.tasks.Add(1)
	go s.follow(ctx)
	return s
}

// Close ends the watch; the file has the list as it was last.
func (s *Service) Close() {
	s.end()
	s.tasks.Wait()
	s.mutex.Lock()
	isDue := s.dirty || s.roster.source == Live
	s.mutex.Unlock()
	if isDue {
		s.save()
	}
}

// Endpoints returns all endpoints, in a stable order. The slice is the caller's.
func (s *Service) Endpoints() []Endpoint {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.endpoints.sorted)
}

// Status of the list.
func (s *Service) Status() Status {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now, r := time.Now(), s.roster
	doubt := r.doubt()
	return Status{
		Known: r.source != None, Source: r.source, Age: r.age(now), Err: s.err, Doubt: doubt, Resyncs: r.resyncs,
		Stale: r.source != Live || r.sourceStale || doubt != "" || now.Sub(s.heardAt) > s.config.StaleAfter,
	}
}

// Ready returns when at least so many endpoints are known (0: when the list is known), or with an error that says what is
// known instead.
func (s *Service) Ready(ctx context.Context, atLeast int) error {
	for {
		s.mutex.Lock()
		isReady := s.roster.source != None && len(s.endpoints.sorted) >= atLeast
		moved, count, err := s.moved, len(s.endpoints.sorted), s.err
		s.mutex.Unlock()
		if isReady {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%s has %d ready endpoints at port %q; HQ: %v: %w", s.name, count, s.port, err, ctx.Err())
		}
	}
}

// OnChange calls a function with each new list, first with the present one, one call after the other, until the returned
// function is called. `call` must not block, nor call OnChange or the returned function.
func (s *Service) OnChange(call func([]Endpoint)) func() {
	s.callback.Lock()
	defer s.callback.Unlock()
	s.mutex.Lock()
	number := s.next
	s.next++
	s.callbacks[number] = call
	endpoints := slices.Clone(s.endpoints.sorted)
	isKnown := s.roster.source != None
	s.mutex.Unlock()
	if isKnown {
		call(endpoints)
	}
	return func() {
		s.callback.Lock()
		defer s.callback.Unlock()
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.callbacks, number)
	}
}

// change alters the state under the lock, and notifies if that changed the list.
func (s *Service) change(alter func(r *roster) changes) {
	s.callback.Lock()
	defer s.callback.Unlock()
	s.mutex.Lock()
	wasKnown := s.roster.source != None
	changed := s.endpoints.update(s.roster, alter(s.roster)) || wasKnown != (s.roster.source != None)
	isOld := s.roster.source == Live && time.Since(s.savedAt) >= saveEvery
	s.dirty = s.dirty || changed || isOld
	close(s.moved)
	s.moved = make(chan struct{})
	if !changed || len(s.callbacks) == 0 { // 50,000 endpoints are not copied for nobody
		s.mutex.Unlock()
		return
	}
	calls, endpoints := slices.Collect(maps.Values(s.callbacks)), slices.Clone(s.endpoints.sorted)
	s.mutex.Unlock()
	for _, call := range calls {
		call(endpoints)
	}
}

func (s *Service) restore() {
	state, found, err := load(s.path, s.name)
	if err != nil {
		s.config.Logger.Warn("starting without the saved list", "file", s.path, "error", err)
	}
	if found {
		s.roster.restore(state, time.Now().Round(0), time.Now())
		s.endpoints.update(s.roster, changes{all: true})
	}
}

func (s *Service) keepSaving(ctx context.Context) {
	defer s.tasks.Done()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.config.SaveAfter):
		}
		s.mutex.Lock()
		isDue := s.dirty
		s.mutex.Unlock()
		if isDue {
			s.save()
		}
	}
}

func (s *Service) save() {
	if s.path == "" {
		return
	}
	s.mutex.Lock()
	if s.roster.source == None {
		s.mutex.Unlock()
		return
	}
	state := s.roster.dump(s.name, time.Now().Round(0), time.Now())
	for name, list := range state.Locations { // the file is written without the lock
		state.Locations[name] = cloneList(list)
	}
	s.dirty, s.savedAt = false, time.Now()
	s.mutex.Unlock()
	if err := save(s.path, state); err != nil {
		s.config.Logger.Warn("the list cannot be saved", "file", s.path, "error", err)
	}
}

func cloneList(list map[string]instance) map[string]instance {
	made := make(map[string]instance, len(list))
	for id, each := range list {
		made[id] = each
	}
	return made
}

func jitter(limit time.Duration) time.Duration {
	return time.Duration(rand.Float64() * float64(limit))
}
