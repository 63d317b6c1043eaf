// Calls a service by its name in HQ, and prints who answers:
//
//	GRPC_XDS_BOOTSTRAP=../bootstrap.json go run . xds:///web/grpc
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	_ "google.golang.org/grpc/xds" // teaches gRPC what xds:/// is
)

func main() {
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	client := grpc_health_v1.NewHealthClient(connection)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var who peer.Peer
		if _, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&who)); err != nil {
			fmt.Println("failed:", err)
		} else {
			fmt.Println("answered by", who.Addr)
		}
		cancel()
		time.Sleep(500 * time.Millisecond)
	}
}
