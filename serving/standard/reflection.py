"""grpc.reflection, v1 and v1alpha: what tools ask to find services and messages. Open to all; streams end in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_reflection.v1alpha import reflection_pb2  # type: ignore[import-untyped]

from serving.calls.methods import Answer, Call, Duplex, Method
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.errors import DeadlineExceeded, invalid
from serving.rights.rules import OPEN

_SERVICES: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
_REQUEST: Final = reflection_pb2.ServerReflectionRequest
_RESPONSE: Final = reflection_pb2.ServerReflectionResponse
_MAX_REQUEST_BYTES: Final = 4_096  # a name, which is sent back
_NOT_FOUND: Final = 5


def methods(services: Sequence[str], patience_s: float) -> list[Method]:
    """Return the methods of both versions, whose messages have the same bytes. Services need a descriptor."""
    reflecting = Reflection([*filter(_is_known, services), *_SERVICES], patience_s)
    parsers = parse_proto(_REQUEST), parse_json(_REQUEST)
    return [Duplex(f"{name}/ServerReflectionInfo", *parsers, reflecting.run, OPEN) for name in _SERVICES]


class Reflection:
    """Answers from the descriptors of the generated code that was imported."""

    def __init__(self, services: Sequence[str], patience_s: float) -> None:
        self._services, self._patience_s = sorted(services), patience_s
        self._pool: Any = descriptor_pool.Default()

    async def run(self, requests: AsyncIterator[Any], _call: Call) -> AsyncIterator[Answer]:
        """A stream of questions, each with its answer."""
        try:
            async with asyncio.timeout(self._patience_s):
                async for request in requests:
                    yield MessageAnswer(self._answer(request))
        except TimeoutError as error:
            raise DeadlineExceeded(f"reflection ends after {self._patience_s:g} s") from error

    def _answer(self, request: Any) -> Any:
        _check_size(request)
        kind = request.WhichOneof("message_request")
        answer = _RESPONSE(valid_host=request.host, original_request=request)
        finders: dict[str, Callable[[], FileDescriptor]] = {
            "file_by_filename": lambda: self._pool.FindFileByName(request.file_by_filename),
            "file_containing_symbol": lambda: self._symbol(request.file_containing_symbol),
            "file_containing_extension": lambda: self._extension(request.file_containing_extension),
        }
        try:
            if kind == "list_services":
                answer.list_services_response.service.extend(
                    [reflection_pb2.ServiceResponse(name=name) for name in self._services]
                )
            elif kind == "all_extension_numbers_of_type":
                self._extension_numbers(request.all_extension_numbers_of_type, answer.all_extension_numbers_response)
            else:
                answer.file_descriptor_response.file_descriptor_proto.extend(_with_dependencies(finders[kind]()))
        except KeyError:
            answer.error_response.error_code = _NOT_FOUND
            answer.error_response.error_message = "unknown symbol or file"
        return answer

    def _symbol(self, name: str) -> FileDescriptor:
        try:
            found: FileDescriptor = self._pool.FindFileContainingSymbol(name)
        except KeyError:  # the pool does not know methods by their names
            service, _, method = name.rpartition(".")
            found = self._pool.FindServiceByName(service).methods_by_name[method].containing_service.file
        return found

    def _extension(self, asked: Any) -> FileDescriptor:
        message = self._pool.FindMessageTypeByName(asked.containing_type)
        found: FileDescriptor = self._pool.FindExtensionByNumber(message, asked.extension_number).file
        return found

    def _extension_numbers(self, name: str, answer: Any) -> None:
        message = self._pool.FindMessageTypeByName(name)
        answer.base_type_name = name
        answer.extension_number.extend([one.number for one in self._pool.FindAllExtensions(message)])


def _with_dependencies(file: FileDescriptor) -> list[bytes]:
    files: dict[str, FileDescriptor] = {}
    waiting = [file]
    while waiting:
        one = waiting.pop()
        if one.name not in files:
            files[one.name] = one
            waiting += one.dependencies
    return [_encode_file(one) for one in files.values()]


def _encode_file(file: FileDescriptor) -> bytes:
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return proto.SerializeToString()


def _check_size(request: Any) -> None:
    if request.ByteSize() > _MAX_REQUEST_BYTES:
        raise invalid("", f"{_MAX_REQUEST_BYTES} bytes are the limit for a name")


def _is_known(service: str) -> bool:
    pool: Any = descriptor_pool.Default()
    try:
        pool.FindServiceByName(service)
    except KeyError:
        return False
    return True
