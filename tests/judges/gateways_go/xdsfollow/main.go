// Calls a target again and again, and prints who answers: `ok` and the answer, or `error` and why.
//
//	xdsfollow TARGET INTERVAL_MS
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/grpc/xds"
)

func main() {
	interval, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	for {
		call, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		var who wrapperspb.StringValue
		err := connection.Invoke(call, "/judged.Who/Who", &emptypb.Empty{}, &who)
		cancel()
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok", who.Value)
		}
		time.Sleep(time.Duration(interval) * time.Millisecond)
	}
}
