// Opens many watches at once, by grpc-go, and tells how each of them went: `watches PORT CONNECTIONS WATCHES REQUEST`.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const patience = 60 * time.Second

// raw takes messages for the bytes that they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

func open(ctx context.Context, conn *grpc.ClientConn, request []byte) string {
	desc := &grpc.StreamDesc{ServerStreams: true}
	stream, err := conn.NewStream(ctx, desc, "/hq.v1.InstanceService/WatchInstances", grpc.ForceCodec(raw{}))
	if err == nil {
		err = stream.SendMsg(&request)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err == nil {
		var first []byte
		err = stream.RecvMsg(&first)
	}
	if err == nil {
		return "served"
	}
	told := status.Convert(err)
	for _, detail := range told.Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return told.Code().String() + " with RetryInfo"
		}
	}
	return told.Code().String() + ": " + told.Message()
}

func main() {
	connections, _ := strconv.Atoi(os.Args[2])
	watches, _ := strconv.Atoi(os.Args[3])
	request, _ := hex.DecodeString(os.Args[4])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conns := make([]*grpc.ClientConn, connections)
	for i := range conns {
		conn, err := grpc.NewClient("127.0.0.1:"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			panic(err)
		}
		conns[i] = conn
	}
	counts, lock, all := map[string]int{}, sync.Mutex{}, sync.WaitGroup{}
	for i := 0; i < watches; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			how := open(ctx, conns[i%connections], request)
			lock.Lock()
			counts[how]++
			lock.Unlock()
		}()
	}
	all.Wait()
	told, _ := json.Marshal(counts)
	fmt.Println(string(told))
}
