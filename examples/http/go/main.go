// Command hq prints the ready instances of a service, then follows them: go run . web http://127.0.0.1:7080
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"

	hqv1 "example.com/hq/gen/hqpb/v1"
	"example.com/hq/gen/hqpb/v1/hqv1connect"
)

func main() {
	service, url := "web", "http://127.0.0.1:7080"
	if len(os.Args) > 1 {
		service = os.Args[1]
	}
	if len(os.Args) > 2 {
		url = os.Args[2]
	}
	hq := hqv1connect.NewInstanceServiceClient(http.DefaultClient, url)
	filter := &hqv1.InstanceFilter{
		ServiceId: []string{service},
		Readiness: hqv1.ReadinessFilter_READINESS_FILTER_READY,
	}
	if err := find(context.Background(), hq, filter); err != nil {
		log.Fatal(err)
	}
	token := ""
	for {
		err := follow(context.Background(), hq, filter, &token)
		log.Printf("watch ended (%v): resuming", err)
		time.Sleep(time.Second)
	}
}

func find(ctx context.Context, hq hqv1connect.InstanceServiceClient, filter *hqv1.InstanceFilter) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found, err := hq.FindInstances(ctx, connect.NewRequest(&hqv1.FindInstancesRequest{Filter: filter}))
	if err != nil {
		return err
	}
	for _, instance := range found.Msg.Instances {
		fmt.Println(address(instance))
	}
	source := found.Msg.Sources[0]
	fmt.Printf("%d ready, as %s knew it at version %d\n", len(found.Msg.Instances), source.Replica, source.Version)
	return nil
}

// follow prints changes until the stream ends; token is where to resume, at any replica.
func follow(ctx context.Context, hq hqv1connect.InstanceServiceClient, filter *hqv1.InstanceFilter, token *string) error {
	stream, err := hq.WatchInstances(ctx, connect.NewRequest(&hqv1.WatchInstancesRequest{Filter: filter, ResumeToken: *token}))
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		message := stream.Msg()
		if message.ResumeToken != "" {
			*token = message.ResumeToken
		}
		for _, event := range message.Events {
			switch {
			case event.GetPut() != nil:
				fmt.Println("+", address(event.GetPut()))
			case event.GetDelete() != nil:
				fmt.Println("-", event.GetDelete().Id)
			case event.GetLeft() != nil:
				fmt.Println("-", event.GetLeft().Id)
			}
		}
	}
	return stream.Err()
}

func address(instance *hqv1.Instance) string {
	allocation := instance.GetSpec().GetAllocation()
	host := allocation.GetHost()
	if host == "" {
		host = instance.GetSpec().GetNodeName()
	}
	text := instance.GetMeta().GetId() + " " + host
	for _, port := range allocation.GetPort() {
		text += fmt.Sprintf(" %s=%d", port.Name, port.Number)
	}
	return text
}
