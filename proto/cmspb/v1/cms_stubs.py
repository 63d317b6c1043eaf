"""Calls of cmspb/v1/cms.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from cmspb.v1 import cms_pb2


class CmsServiceStub:
    """cms.v1.CmsService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.CreateTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.CreateTaskRequest, cms_pb2.CreateTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/CreateTask", cms_pb2.CreateTaskRequest.SerializeToString, cms_pb2.CreateTaskResponse.FromString
        )
        self.GetTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.GetTaskRequest, cms_pb2.GetTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/GetTask", cms_pb2.GetTaskRequest.SerializeToString, cms_pb2.GetTaskResponse.FromString
        )
        self.ListTasks: aio.UnaryUnaryMultiCallable[
            cms_pb2.ListTasksRequest, cms_pb2.ListTasksResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/ListTasks", cms_pb2.ListTasksRequest.SerializeToString, cms_pb2.ListTasksResponse.FromString
        )
        self.DeleteTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.DeleteTaskRequest, cms_pb2.DeleteTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/DeleteTask", cms_pb2.DeleteTaskRequest.SerializeToString, cms_pb2.DeleteTaskResponse.FromString
        )
        self.ConfirmTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.ConfirmTaskRequest, cms_pb2.ConfirmTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/ConfirmTask", cms_pb2.ConfirmTaskRequest.SerializeToString, cms_pb2.ConfirmTaskResponse.FromString
        )
        self.WhyTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.WhyTaskRequest, cms_pb2.WhyTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/WhyTask", cms_pb2.WhyTaskRequest.SerializeToString, cms_pb2.WhyTaskResponse.FromString
        )
        self.Plan: aio.UnaryUnaryMultiCallable[
            cms_pb2.PlanRequest, cms_pb2.PlanResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/Plan", cms_pb2.PlanRequest.SerializeToString, cms_pb2.PlanResponse.FromString
        )
        self.PutBudget: aio.UnaryUnaryMultiCallable[
            cms_pb2.PutBudgetRequest, cms_pb2.PutBudgetResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/PutBudget", cms_pb2.PutBudgetRequest.SerializeToString, cms_pb2.PutBudgetResponse.FromString
        )
        self.ListBudgets: aio.UnaryUnaryMultiCallable[
            cms_pb2.ListBudgetsRequest, cms_pb2.ListBudgetsResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/ListBudgets", cms_pb2.ListBudgetsRequest.SerializeToString, cms_pb2.ListBudgetsResponse.FromString
        )
        self.DeleteBudget: aio.UnaryUnaryMultiCallable[
            cms_pb2.DeleteBudgetRequest, cms_pb2.DeleteBudgetResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/DeleteBudget", cms_pb2.DeleteBudgetRequest.SerializeToString, cms_pb2.DeleteBudgetResponse.FromString
        )
        self.PutWindows: aio.UnaryUnaryMultiCallable[
            cms_pb2.PutWindowsRequest, cms_pb2.PutWindowsResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/PutWindows", cms_pb2.PutWindowsRequest.SerializeToString, cms_pb2.PutWindowsResponse.FromString
        )
        self.ListWindows: aio.UnaryUnaryMultiCallable[
            cms_pb2.ListWindowsRequest, cms_pb2.ListWindowsResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/ListWindows", cms_pb2.ListWindowsRequest.SerializeToString, cms_pb2.ListWindowsResponse.FromString
        )
        self.DeleteWindows: aio.UnaryUnaryMultiCallable[
            cms_pb2.DeleteWindowsRequest, cms_pb2.DeleteWindowsResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/DeleteWindows", cms_pb2.DeleteWindowsRequest.SerializeToString, cms_pb2.DeleteWindowsResponse.FromString
        )
        self.EndDeclaration: aio.UnaryUnaryMultiCallable[
            cms_pb2.EndDeclarationRequest, cms_pb2.EndDeclarationResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/EndDeclaration", cms_pb2.EndDeclarationRequest.SerializeToString, cms_pb2.EndDeclarationResponse.FromString
        )
        self.GetStatus: aio.UnaryUnaryMultiCallable[
            cms_pb2.GetStatusRequest, cms_pb2.GetStatusResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsService/GetStatus", cms_pb2.GetStatusRequest.SerializeToString, cms_pb2.GetStatusResponse.FromString
        )


class CmsAdminServiceStub:
    """cms.v1.CmsAdminService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.Freeze: aio.UnaryUnaryMultiCallable[
            cms_pb2.FreezeRequest, cms_pb2.FreezeResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsAdminService/Freeze", cms_pb2.FreezeRequest.SerializeToString, cms_pb2.FreezeResponse.FromString
        )
        self.Unfreeze: aio.UnaryUnaryMultiCallable[
            cms_pb2.UnfreezeRequest, cms_pb2.UnfreezeResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsAdminService/Unfreeze", cms_pb2.UnfreezeRequest.SerializeToString, cms_pb2.UnfreezeResponse.FromString
        )
        self.Open: aio.UnaryUnaryMultiCallable[
            cms_pb2.OpenRequest, cms_pb2.OpenResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsAdminService/Open", cms_pb2.OpenRequest.SerializeToString, cms_pb2.OpenResponse.FromString
        )
        self.ExtendTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.ExtendTaskRequest, cms_pb2.ExtendTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsAdminService/ExtendTask", cms_pb2.ExtendTaskRequest.SerializeToString, cms_pb2.ExtendTaskResponse.FromString
        )
        self.ExpediteTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.ExpediteTaskRequest, cms_pb2.ExpediteTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsAdminService/ExpediteTask", cms_pb2.ExpediteTaskRequest.SerializeToString, cms_pb2.ExpediteTaskResponse.FromString
        )
        self.EndTask: aio.UnaryUnaryMultiCallable[
            cms_pb2.EndTaskRequest, cms_pb2.EndTaskResponse
        ] = channel.unary_unary(
            "/cms.v1.CmsAdminService/EndTask", cms_pb2.EndTaskRequest.SerializeToString, cms_pb2.EndTaskResponse.FromString
        )
