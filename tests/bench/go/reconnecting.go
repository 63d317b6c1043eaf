// Many watches over grpc-go, each with a connection of its own, that resume at another replica when theirs is gone.
//
// Arguments: addresses (comma-separated), how many, service. It prints "synced" when all have their snapshot. Told the
// moment of a fault to come on standard input (seconds since 1970), it waits until each watch was broken and is back, for a minute
// at most, and prints as JSON how many seconds after the fault each was back.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/encoding/protowire"
)

type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (raw) Unmarshal(b []byte, v any) error { *v.(*[]byte) = append([]byte{}, b...); return nil }
func (raw) Name() string                    { return "proto" } // which is what they are

const (
	method = "/hq.v1.InstanceService/WatchInstances"
	synced = 2
	// One replica after the other, each client in an order of its own.
	config = `{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":true}}]}`
)

var (
	first    sync.WaitGroup
	back     sync.Mutex
	times    []float64
	streams  atomic.Int64
	faultAt  atomic.Int64 // milliseconds since 1970; 0: there was none yet
	expected int
)

func request(service, token string) []byte {
	filter := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), service)
	sent := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), filter)
	return protowire.AppendString(protowire.AppendTag(sent, 2, protowire.BytesType), token)
}

// The kind and the resume token of a message.
func read(message []byte) (kind uint64, token string) {
	for len(message) > 0 {
		number, wire, size := protowire.ConsumeTag(message)
		message = message[size:]
		if number == 1 && wire == protowire.VarintType {
			kind, _ = protowire.ConsumeVarint(message)
		} else if number == 3 && wire == protowire.BytesType {
			token, _ = protowire.ConsumeString(message)
		}
		message = message[protowire.ConsumeFieldValue(number, wire, message):]
	}
	return kind, token
}

func watch(addresses []string, service string) {
	list := manual.NewBuilderWithScheme("hq")
	var state resolver.State
	for _, address := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
	}
	list.InitialState(state)
	backing := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.5, MaxDelay: 5 * time.Second}
	conn, err := grpc.NewClient("hq:///replicas", grpc.WithResolvers(list), grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backing, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 12 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.WaitForReady(true)))
	if err != nil {
		panic(err)
	}
	token, isSynced, failures := "", false, 0
	for {
		broken := isSynced && faultAt.Load() != 0
		context, cancel := context.WithCancel(context.Background())
		streams.Add(1)
		stream, err := conn.NewStream(context, &grpc.StreamDesc{ServerStreams: true}, method)
		if err == nil {
			sent := request(service, token)
			if err = stream.SendMsg(&sent); err == nil {
				err = stream.CloseSend()
			}
		}
		for err == nil {
			var message []byte
			if err = stream.RecvMsg(&message); err != nil {
				break
			}
			failures = 0
			kind, newer := read(message)
			if newer != "" {
				token = newer
			}
			if kind == synced && !isSynced {
				isSynced = true
				first.Done()
			} else if broken {
				broken = false
				back.Lock()
				times = append(times, float64(time.Now().UnixMilli()-faultAt.Load())/1000)
				back.Unlock()
			}
		}
		cancel()
		if failures++; !isSynced && failures > 20 {
			panic(err)
		}
		limit := min(10*time.Second, 200*time.Millisecond<<min(failures-1, 10))
		time.Sleep(time.Duration(rand.Float64() * float64(limit)))
	}
}

func main() {
	addresses, service := strings.Split(os.Args[1], ","), os.Args[3]
	expected, _ = strconv.Atoi(os.Args[2])
	first.Add(expected)
	for range expected {
		go watch(addresses, service)
		time.Sleep(200 * time.Microsecond)
	}
	first.Wait()
	fmt.Println("synced")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	at, _ := strconv.ParseFloat(strings.TrimSpace(line), 64)
	streams.Store(0)
	faultAt.Store(int64(at * 1000))
	for range 600 {
		back.Lock()
		count := len(times)
		back.Unlock()
		if count >= expected {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	back.Lock()
	told, _ := json.Marshal(map[string]any{"back_s": times, "streams": streams.Load()})
	fmt.Println(string(told))
	back.Unlock()
	select {} // until it is killed
}
