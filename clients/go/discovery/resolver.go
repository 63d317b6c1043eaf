package discovery

import (
	"strings"

	"google.golang.org/grpc/resolver"
)

// NewResolver makes grpc-go find services by their names: `hq:///web` is service web at the port named `grpc`,
// `hq:///web/http` at another one. Endpoints of weight 0 get no calls; other weights are ignored. Give it to grpc.WithResolvers, or register it for all.
func NewResolver(found *Discovery) resolver.Builder { return resolverBuilder{found} }

type resolverBuilder struct{ found *Discovery }

func (resolverBuilder) Scheme() string { return "hq" }

func (b resolverBuilder) Build(
	target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions,
) (resolver.Resolver, error) {
	name, port, _ := strings.Cut(target.Endpoint(), "/")
	if port == "" {
		port = "grpc"
	}
	service := b.found.Service(name, port)
	service.OnChange(func(endpoints []Endpoint) {
		state := resolver.State{}
		for _, each := range WithTraffic(endpoints) {
			address := resolver.Address{Addr: each.Address()}
			state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}})
		}
		_ = conn.UpdateState(state) // an empty list is refused: calls fail, and say so, until there is an endpoint
	})
	return &serviceResolver{service}, nil
}

type serviceResolver struct{ service *Service }

// ResolveNow does nothing: a watch tells of changes as they come.
func (*serviceResolver) ResolveNow(resolver.ResolveNowOptions) {}

func (r *serviceResolver) Close() { r.service.Close() }
