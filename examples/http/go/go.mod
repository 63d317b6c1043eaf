module example.com/hq

go 1.22

require (
	connectrpc.com/connect v1.17.0
	google.golang.org/protobuf v1.35.2
)
