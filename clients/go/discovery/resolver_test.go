package discovery

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	hqv1 "example.com/hq/hqpb/v1"
)

// oneWatch is an HQ that sends what a test hands it.
type oneWatch struct {
	hqv1.UnimplementedInstanceServiceServer
	messages chan *hqv1.WatchInstancesResponse
}

func (o oneWatch) WatchInstances(
	_ *hqv1.WatchInstancesRequest, stream grpc.ServerStreamingServer[hqv1.WatchInstancesResponse],
) error {
	for {
		select {
		case message := <-o.messages:
			if err := stream.Send(message); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

func serve(t *testing.T, register func(*grpc.Server)) (string, uint32) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String(), uint32(listener.Addr().(*net.TCPAddr).Port)
}

func put(id string, port uint32) *hqv1.WatchEvent {
	ready := &hqv1.Condition{Status: hqv1.ConditionStatus_CONDITION_STATUS_TRUE}
	made := &hqv1.Instance{
		Meta: &hqv1.InstanceMeta{Id: id, ServiceId: "web", Cluster: "c"},
		Spec: &hqv1.InstanceSpec{Allocation: &hqv1.ResourceAllocation{
			Host: "127.0.0.1", Port: []*hqv1.PortAllocation{{Name: "grpc", Number: port}},
		}},
		Status: &hqv1.InstanceStatus{Ready: ready},
	}
	return &hqv1.WatchEvent{Change: &hqv1.WatchEvent_Put{Put: made}}
}

func TestChannelFollowsServiceThroughRollOut(t *testing.T) {
	hq := oneWatch{messages: make(chan *hqv1.WatchInstancesResponse, 8)}
	hqAddress, _ := serve(t, func(s *grpc.Server) { hqv1.RegisterInstanceServiceServer(s, hq) })
	backend := func(s *grpc.Server) { healthpb.RegisterHealthServer(s, health.NewServer()) }
	oldAddress, oldPort := serve(t, backend)
	newAddress, newPort := serve(t, backend)
	say := func(kind hqv1.WatchKind, token string, events ...*hqv1.WatchEvent) {
		sources := []*hqv1.Source{{Cluster: "c", Replica: "r", Epoch: "e"}}
		hq.messages <- &hqv1.WatchInstancesResponse{Kind: kind, ResumeToken: token, Events: events, Sources: sources}
	}
	found, err := New(Config{Servers: []string{hqAddress}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("hq:///web", grpc.WithResolvers(NewResolver(found)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	callUntil := func(address string) {
		for {
			var who peer.Peer
			_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{},
				grpc.Peer(&who), grpc.WaitForReady(true))
			if err != nil {
				t.Fatalf("a call failed: %v", err)
			}
			if who.Addr.String() == address {
				return
			}
		}
	}
	say(hqv1.WatchKind_WATCH_KIND_SNAPSHOT, "", put("web-1", oldPort))
	say(hqv1.WatchKind_WATCH_KIND_SYNCED, "t1")
	callUntil(oldAddress)
	say(hqv1.WatchKind_WATCH_KIND_EVENTS, "t2", put("web-2", newPort))
	callUntil(newAddress)
	gone := &hqv1.WatchEvent{Change: &hqv1.WatchEvent_Left{Left: &hqv1.InstanceRef{Id: "web-1", Cluster: "c"}}}
	say(hqv1.WatchKind_WATCH_KIND_EVENTS, "t3", gone)
	for range 50 {
		callUntil(newAddress)
	}
}
