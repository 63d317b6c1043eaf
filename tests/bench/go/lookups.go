// One unary call over and over, by grpc-go, with what changes from call to call in a cloud: the deadline, the trace id, the
// caller's token.
//
// Arguments: address, path, request in hex, file of tokens (one a line), connections, calls in flight on
// each, seconds. It prints as JSON how many calls were answered, and their times in milliseconds.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (raw) Unmarshal(b []byte, v any) error { *v.(*[]byte) = append([]byte{}, b...); return nil }
func (raw) Name() string                    { return "proto" } // which is what they are

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func number(text string) int { return must(strconv.Atoi(text)) }

func tokens(path string) (found []string) {
	for lines := bufio.NewScanner(must(os.Open(path))); lines.Scan(); {
		found = append(found, "Bearer "+lines.Text())
	}
	return found
}

func call(conn *grpc.ClientConn, path string, request []byte, callers []string) {
	limit := time.Second + rand.N(9*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	trace := fmt.Sprintf("00-%016x%016x-%016x-01", rand.Uint64(), rand.Uint64(), rand.Uint64())
	brought := []string{"traceparent", trace, "authorization", callers[rand.N(len(callers))]}
	var answer []byte
	must(0, conn.Invoke(metadata.AppendToOutgoingContext(ctx, brought...), path, &request, &answer))
}

func main() {
	address, path, request, callers := os.Args[1], os.Args[2], must(hex.DecodeString(os.Args[3])), tokens(os.Args[4])
	connections, inFlight := number(os.Args[5]), number(os.Args[6])
	end := time.Now().Add(time.Duration(must(strconv.ParseFloat(os.Args[7], 64)) * float64(time.Second)))
	times := make([][]float64, connections*inFlight)
	var all sync.WaitGroup
	for c := range connections {
		conn := must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}))))
		for n := range inFlight {
			all.Add(1)
			go func() {
				defer all.Done()
				for began := time.Now(); began.Before(end); began = time.Now() {
					call(conn, path, request, callers)
					mine := &times[c*inFlight+n]
					*mine = append(*mine, time.Since(began).Seconds()*1000)
				}
			}()
		}
	}
	all.Wait()
	var ordered []float64
	for _, mine := range times {
		ordered = append(ordered, mine...)
	}
	sort.Float64s(ordered)
	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{"done": len(ordered), "p50": at(ordered, 0.5),
		"p90": at(ordered, 0.9), "p99": at(ordered, 0.99), "most": at(ordered, 1)}))
}

func at(ordered []float64, share float64) float64 {
	if len(ordered) == 0 {
		return 0
	}
	return ordered[min(len(ordered)-1, int(share*float64(len(ordered))))]
}
