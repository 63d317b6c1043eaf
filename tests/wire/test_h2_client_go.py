"""The client against Google's server for Go, compiled when it is needed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from google.rpc import code_pb2 as codes  # type: ignore[import-untyped]

from hqclient.errors import DETAILS_KEY, decode_status
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed, Options
from tests.support.sample_instances import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_GO = """
package main

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type raw struct{}

func (raw) Marshal(v any) ([]byte, error)     { return *v.(*[]byte), nil }
func (raw) Unmarshal(b []byte, v any) error   { *v.(*[]byte) = append([]byte{}, b...); return nil }
func (raw) Name() string                      { return "raw" }

var left atomic.Int64

func serve(_ any, s grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(s)
	var request []byte
	if err := s.RecvMsg(&request); err != nil {
		return err
	}
	say := func(text string) error { b := []byte(text); return s.SendMsg(&b) }
	switch path {
	case "/t.T/Echo":
		return s.SendMsg(&request)
	case "/t.T/Slow":
		time.Sleep(20 * time.Millisecond)
		return s.SendMsg(&request)
	case "/t.T/Count":
		for i := 0; i < 1000; i++ {
			if err := say(strings.Repeat("x", i)); err != nil {
				return err
			}
		}
		return nil
	case "/t.T/Fail":
		st, _ := status.New(codes.FailedPrecondition, "50 % of ä").WithDetails(
			&errdetails.ErrorInfo{Reason: "FENCED", Domain: "hq"})
		return st.Err()
	case "/t.T/Wait":
		<-s.Context().Done()
		left.Add(1)
		return s.Context().Err()
	case "/t.T/Left":
		return say(fmt.Sprint(left.Load()))
	case "/t.T/Seen":
		md, _ := metadata.FromIncomingContext(s.Context())
		until, ok := s.Context().Deadline()
		return say(fmt.Sprint(md.Get("a"), md.Get("b-bin"), ok, time.Until(until).Round(time.Second)))
	}
	return status.Error(codes.Unimplemented, path)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(serve),
		grpc.MaxConcurrentStreams(8), grpc.MaxRecvMsgSize(64<<20),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 2 * time.Second}))
	panic(server.Serve(listener))
}
"""
_VERSION = "v1.84.0"


async def _run(*order: str, cwd: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *order, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={**os.environ}
    )
    said, _ = await process.communicate()
    if process.returncode:
        pytest.skip(f"the Go server cannot be built: {' '.join(order)}: {said.decode()[-500:]}")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server, built once."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    folder = tmp_path_factory.mktemp("go")
    (folder / "main.go").write_text(_GO)

    async def build() -> None:
        await _run("go", "mod", "init", "judge", cwd=folder)
        await _run("go", "get", f"google.golang.org/grpc@{_VERSION}", cwd=folder)
        await _run("go", "mod", "tidy", cwd=folder)
        await _run("go", "build", "-o", "judge", ".", cwd=folder)

    asyncio.run(build())
    return folder / "judge"


@pytest.fixture
async def channel(program: Path) -> AsyncIterator[Channel]:
    process = await asyncio.create_subprocess_exec(program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    made = Channel((await process.stdout.readline()).decode().strip(), None, Options(ping_after_s=1.0))
    yield made
    await made.close()
    process.terminate()
    await process.wait()


async def test_messages_of_all_sizes_come_back(channel: Channel) -> None:
    for size in (0, 1, 16_379, 16_384, 65_535, 65_536, 1_000_000, 20_000_000):
        message = os.urandom(size)
        assert await channel.unary("/t.T/Echo", message, 60.0) == message


async def test_connections_that_age_lose_no_call_that_is_told_as_lost(channel: Channel) -> None:
    failed, seen = [], set()

    async def ask(until: float) -> int:
        answered = 0
        while asyncio.get_running_loop().time() < until:
            try:
                assert await channel.unary("/t.T/Slow", b"x", 10.0) == b"x"
                answered += 1
            except CallFailed as error:
                failed.append(error)
            seen.add(id(channel._current))
        return answered

    until = asyncio.get_running_loop().time() + 8.0
    assert sum(await asyncio.gather(*(ask(until) for _ in range(32)))) > 1_000
    assert len(seen) > 2
    assert not [error for error in failed if not error.is_unprocessed]


async def test_a_stream_arrives_in_order(channel: Channel) -> None:
    assert [len(m) async for m in channel.stream("/t.T/Count", b"")] == [*range(1_000)]


async def test_errors_metadata_and_deadlines_are_understood(channel: Channel) -> None:
    with pytest.raises(CallFailed) as raised:
        await channel.unary("/t.T/Fail", b"", 5.0)
    error = raised.value
    decoded = decode_status(error.code, error.message, error.binary(DETAILS_KEY))
    assert (decoded.code.name, decoded.message, decoded.reason) == ("FAILED_PRECONDITION", "50 % of ä", "FENCED")
    metadata = (("a", "1"), ("a", "2"), ("b-bin", b"\1\2"))
    assert await channel.unary("/t.T/Seen", b"", 7.0, metadata) == b"[1 2] [\1\2] true 7s"
    with pytest.raises(CallFailed) as raised:
        await channel.unary("/t.T/Nothing", b"", 5.0)
    assert raised.value.code == codes.UNIMPLEMENTED


async def test_the_server_notices_a_call_that_was_left(channel: Channel) -> None:
    assert await channel.unary("/t.T/Echo", b"x", 30.0) == b"x"  # connected: calls arrive before they are left
    with pytest.raises(CallFailed) as raised:
        await channel.unary("/t.T/Wait", b"", 1.0)
    assert raised.value.code == codes.DEADLINE_EXCEEDED
    waiting = asyncio.create_task(channel.unary("/t.T/Wait", b"", 30.0))
    await asyncio.sleep(1.0)
    waiting.cancel()

    async def both_left() -> bool:
        return await channel.unary("/t.T/Left", b"", 5.0) == b"2"

    await eventually(both_left)


async def test_the_server_does_not_find_the_pings_too_many(channel: Channel) -> None:
    with pytest.raises(CallFailed) as raised:
        await channel.unary("/t.T/Wait", b"", 8.0)
    assert raised.value.code == codes.DEADLINE_EXCEEDED
