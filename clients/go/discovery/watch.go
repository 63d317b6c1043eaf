package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	hqv1 "example.com/hq/hqpb/v1"
)

const (
	firstBackoff = 10 * time.Millisecond
	stableAfter  = 5 * time.Second
	largest      = 64 << 20
)

var errRenewal = errors.New("starting over, to compare with HQ")

// replica is a server and the connection to it, if there is one.
type replica struct {
	address string
	conn    *grpc.ClientConn
	madeOf  string // version of the certificates
}

func (r *replica) drop() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// follow opens one watch after the other until the service is closed. No error ends it.
func (s *Service) follow(ctx context.Context) {
	defer s.tasks.Done()
	replicas := make([]*replica, 0, len(s.config.Servers))
	for _, address := range s.config.Servers {
		replicas = append(replicas, &replica{address: address})
	}
	rand.Shuffle(len(replicas), func(a, b int) { replicas[a], replicas[b] = replicas[b], replicas[a] })
	defer func() {
		for _, each := range replicas {
			each.drop()
		}
	}()
	failures, at := 0, 0
	for ctx.Err() == nil {
		began := time.Now()
		err := s.watch(ctx, replicas[at])
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRenewal) {
			s.change(func(r *roster) changes { r.startOver(); return changes{} })
			continue
		}
		s.ended(err)
		if time.Since(began) >= stableAfter {
			failures = 0
		}
		failures++
		at = (at + 1) % len(replicas)
		select {
		case <-time.After(s.wait(err, failures, len(replicas))):
		case <-ctx.Done():
		}
	}
}

// ended notes why there is no stream, and what that means for the token.
func (s *Service) ended(err error) {
	s.change(func(r *roster) changes {
		s.err = err
		r.streamEnded()
		switch status.Code(err) {
		case codes.FailedPrecondition, codes.OutOfRange, codes.InvalidArgument:
			if r.token != "" {
				r.startOver()
			}
		}
		return changes{}
	})
}

// wait returns how long to wait for the next stream: 0 while a replica has not been asked, else with jitter; never less
// than HQ asks for.
func (s *Service) wait(err error, failures, replicas int) time.Duration {
	limit := s.config.MaxBackoff
	if round := (failures - 1) / replicas; round < 20 {
		limit = min(limit, firstBackoff<<round)
	}
	wait := jitter(limit)
	if failures%replicas != 0 {
		wait = 0
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated, codes.NotFound, codes.Unimplemented:
		wait = s.config.RefusedWait/2 + jitter(s.config.RefusedWait)
	}
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			asked := retry.GetRetryDelay().AsDuration()
			wait = max(wait, asked+jitter(asked/5))
		}
	}
	return wait
}

// watch follows one stream until it ends. A stream that says nothing for too long is ended.
func (s *Service) watch(ctx context.Context, at *replica) error {
	if err := s.connect(ctx, at); err != nil {
		at.drop()
		return err
	}
	ctx, end := context.WithCancelCause(s.identity.withToken(ctx))
	defer end(nil)
	silence := time.AfterFunc(s.config.SilenceLimit, func() {
		end(fmt.Errorf("%s sent nothing for %s, not even a bookmark", at.address, s.config.SilenceLimit))
	})
	defer silence.Stop()
	s.mutex.Lock()
	request := &hqv1.WatchInstancesRequest{
		ResumeToken: s.roster.token,
		Filter: &hqv1.InstanceFilter{
			ServiceId: []string{s.name}, Readiness: hqv1.ReadinessFilter_READINESS_FILTER_READY,
		},
	}
	s.mutex.Unlock()
	err := s.receive(ctx, at, request, silence)
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		at.drop() // it may be frozen: its connection says nothing either
		return cause
	}
	if status.Code(err) == codes.Unavailable {
		at.drop()
	}
	return err
}

func (s *Service) receive(
	ctx context.Context, at *replica, request *hqv1.WatchInstancesRequest, silence *time.Timer,
) error {
	stream, err := hqv1.NewInstanceServiceClient(at.conn).WatchInstances(ctx, request)
	if err != nil {
		return err
	}
	renewAt := time.Now().Add(time.Duration(float64(s.config.RenewEvery) * (0.8 + 0.4*rand.Float64())))
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s ended the watch", at.address)
		}
		if err != nil {
			return err
		}
		silence.Reset(s.config.SilenceLimit)
		s.change(func(r *roster) changes {
			s.err, s.heardAt = nil, time.Now()
			return r.apply(message, s.heardAt)
		})
		s.mutex.Lock()
		isDue := time.Now().After(renewAt) && s.roster.token != ""
		s.mutex.Unlock()
		if isDue {
			return errRenewal
		}
	}
}

// connect makes a connection that stands at this moment, with the certificates of now. When to try again is decided here,
// not by gRPC.
func (s *Service) connect(ctx context.Context, at *replica) error {
	made, version := s.identity.current()
	if at.conn != nil && at.madeOf != version {
		at.drop()
	}
	if at.conn == nil {
		options := append([]grpc.DialOption{
			grpc.WithTransportCredentials(made),
			grpc.WithDisableRetry(),
			grpc.WithIdleTimeout(0),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 12 * time.Second, Timeout: 3 * time.Second}),
		}, s.config.DialOptions...)
		conn, err := grpc.NewClient(at.address, options...)
		if err != nil {
			return err
		}
		at.conn, at.madeOf = conn, version
	}
	ctx, end := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer end()
	for {
		state := at.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return fmt.Errorf("cannot connect to %s (refused, not resolvable, not gRPC, or TLS does not match)", at.address)
		case connectivity.Idle:
			at.conn.Connect()
		}
		if !at.conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("%s did not accept a connection in time", at.address)
		}
	}
}
