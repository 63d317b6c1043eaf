package discovery

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"

	hqv1 "example.com/hq/hqpb/v1"
)

var sources = []*hqv1.Source{{Cluster: "c", Replica: "r", Epoch: "e"}}

func TestFiftyThousandEndpointsAndOneMore(t *testing.T) {
	const parts, each = 50, 1_000
	hq := oneWatch{messages: make(chan *hqv1.WatchInstancesResponse, parts+2)}
	address, _ := serve(t, func(s *grpc.Server) { hqv1.RegisterInstanceServiceServer(s, hq) })
	found, err := New(Config{Servers: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	web := found.Service("web", "grpc")
	defer web.Close()
	for part := range parts {
		events := make([]*hqv1.WatchEvent, each)
		for number := range each {
			events[number] = put(fmt.Sprintf("web-%d-%d", part, number), uint32(part+1))
		}
		hq.messages <- &hqv1.WatchInstancesResponse{
			Kind: hqv1.WatchKind_WATCH_KIND_SNAPSHOT, Events: events, Sources: sources,
		}
	}
	hq.messages <- &hqv1.WatchInstancesResponse{
		Kind: hqv1.WatchKind_WATCH_KIND_SYNCED, ResumeToken: "t1", Sources: sources,
	}
	ctx, end := context.WithTimeout(context.Background(), 2*time.Minute)
	defer end()
	if err := web.Ready(ctx, parts*each); err != nil {
		t.Fatal(err)
	}
	hq.messages <- &hqv1.WatchInstancesResponse{
		Kind: hqv1.WatchKind_WATCH_KIND_EVENTS, ResumeToken: "t2", Sources: sources,
		Events: []*hqv1.WatchEvent{put("web-more", 1)},
	}
	if err := web.Ready(ctx, parts*each+1); err != nil {
		t.Fatal(err)
	}
}

// ownService is an HQ that shows one instance of whatever service it is asked for, and says nothing more.
type ownService struct {
	hqv1.UnimplementedInstanceServiceServer
}

func (ownService) WatchInstances(
	asked *hqv1.WatchInstancesRequest, stream grpc.ServerStreamingServer[hqv1.WatchInstancesResponse],
) error {
	event := put("one", 1)
	event.GetPut().Meta.ServiceId = asked.Filter.ServiceId[0]
	for _, message := range []*hqv1.WatchInstancesResponse{
		{Kind: hqv1.WatchKind_WATCH_KIND_SNAPSHOT, Events: []*hqv1.WatchEvent{event}, Sources: sources},
		{Kind: hqv1.WatchKind_WATCH_KIND_SYNCED, ResumeToken: "t1", Sources: sources},
	} {
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func TestThousandServicesAreFollowedAndLeaveNothing(t *testing.T) {
	address, _ := serve(t, func(s *grpc.Server) { hqv1.RegisterInstanceServiceServer(s, ownService{}) })
	found, err := New(Config{Servers: []string{address}, ConnectTimeout: time.Hour, SilenceLimit: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	ctx, end := context.WithTimeout(context.Background(), 8*time.Minute)
	defer end()
	services := []*Service{}
	for number := range 1_000 {
		services = append(services, found.Service(fmt.Sprintf("s-%d", number), "grpc"))
	}
	for _, service := range services {
		if err := service.Ready(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, service := range services {
		service.Close()
	}
	for runtime.NumGoroutine() > before+10 { // those of the server's connections end a moment later
		select {
		case <-ctx.Done():
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
