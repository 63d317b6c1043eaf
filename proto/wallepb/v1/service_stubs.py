"""Calls of wallepb/v1/service.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from wallepb.v1 import service_pb2


class WalleServiceStub:
    """walle.v1.WalleService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.GetProject: aio.UnaryUnaryMultiCallable[
            service_pb2.GetProjectRequest, service_pb2.GetProjectResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/GetProject", service_pb2.GetProjectRequest.SerializeToString, service_pb2.GetProjectResponse.FromString
        )
        self.ListProjects: aio.UnaryUnaryMultiCallable[
            service_pb2.ListProjectsRequest, service_pb2.ListProjectsResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ListProjects", service_pb2.ListProjectsRequest.SerializeToString, service_pb2.ListProjectsResponse.FromString
        )
        self.GetHost: aio.UnaryUnaryMultiCallable[
            service_pb2.GetHostRequest, service_pb2.GetHostResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/GetHost", service_pb2.GetHostRequest.SerializeToString, service_pb2.GetHostResponse.FromString
        )
        self.ListHosts: aio.UnaryUnaryMultiCallable[
            service_pb2.ListHostsRequest, service_pb2.ListHostsResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ListHosts", service_pb2.ListHostsRequest.SerializeToString, service_pb2.ListHostsResponse.FromString
        )
        self.GetLimits: aio.UnaryUnaryMultiCallable[
            service_pb2.GetLimitsRequest, service_pb2.GetLimitsResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/GetLimits", service_pb2.GetLimitsRequest.SerializeToString, service_pb2.GetLimitsResponse.FromString
        )
        self.GetForecast: aio.UnaryUnaryMultiCallable[
            service_pb2.GetForecastRequest, service_pb2.GetForecastResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/GetForecast", service_pb2.GetForecastRequest.SerializeToString, service_pb2.GetForecastResponse.FromString
        )
        self.ListIncidents: aio.UnaryUnaryMultiCallable[
            service_pb2.ListIncidentsRequest, service_pb2.ListIncidentsResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ListIncidents", service_pb2.ListIncidentsRequest.SerializeToString, service_pb2.ListIncidentsResponse.FromString
        )
        self.ListNotices: aio.UnaryUnaryMultiCallable[
            service_pb2.ListNoticesRequest, service_pb2.ListNoticesResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ListNotices", service_pb2.ListNoticesRequest.SerializeToString, service_pb2.ListNoticesResponse.FromString
        )
        self.GetScenario: aio.UnaryUnaryMultiCallable[
            service_pb2.GetScenarioRequest, service_pb2.GetScenarioResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/GetScenario", service_pb2.GetScenarioRequest.SerializeToString, service_pb2.GetScenarioResponse.FromString
        )
        self.ListScenarios: aio.UnaryUnaryMultiCallable[
            service_pb2.ListScenariosRequest, service_pb2.ListScenariosResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ListScenarios", service_pb2.ListScenariosRequest.SerializeToString, service_pb2.ListScenariosResponse.FromString
        )
        self.GetSettings: aio.UnaryUnaryMultiCallable[
            service_pb2.GetSettingsRequest, service_pb2.GetSettingsResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/GetSettings", service_pb2.GetSettingsRequest.SerializeToString, service_pb2.GetSettingsResponse.FromString
        )
        self.FollowFuses: aio.UnaryStreamMultiCallable[
            service_pb2.FollowFusesRequest, service_pb2.FollowFusesResponse
        ] = channel.unary_stream(
            "/walle.v1.WalleService/FollowFuses", service_pb2.FollowFusesRequest.SerializeToString, service_pb2.FollowFusesResponse.FromString
        )
        self.CreateProject: aio.UnaryUnaryMultiCallable[
            service_pb2.CreateProjectRequest, service_pb2.CreateProjectResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/CreateProject", service_pb2.CreateProjectRequest.SerializeToString, service_pb2.CreateProjectResponse.FromString
        )
        self.UpdateProject: aio.UnaryUnaryMultiCallable[
            service_pb2.UpdateProjectRequest, service_pb2.UpdateProjectResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/UpdateProject", service_pb2.UpdateProjectRequest.SerializeToString, service_pb2.UpdateProjectResponse.FromString
        )
        self.DeleteProject: aio.UnaryUnaryMultiCallable[
            service_pb2.DeleteProjectRequest, service_pb2.DeleteProjectResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/DeleteProject", service_pb2.DeleteProjectRequest.SerializeToString, service_pb2.DeleteProjectResponse.FromString
        )
        self.SwitchAutomation: aio.UnaryUnaryMultiCallable[
            service_pb2.SwitchAutomationRequest, service_pb2.SwitchAutomationResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/SwitchAutomation", service_pb2.SwitchAutomationRequest.SerializeToString, service_pb2.SwitchAutomationResponse.FromString
        )
        self.ImportMachines: aio.UnaryUnaryMultiCallable[
            service_pb2.ImportMachinesRequest, service_pb2.ImportMachinesResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ImportMachines", service_pb2.ImportMachinesRequest.SerializeToString, service_pb2.ImportMachinesResponse.FromString
        )
        self.RemoveMachine: aio.UnaryUnaryMultiCallable[
            service_pb2.RemoveMachineRequest, service_pb2.RemoveMachineResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/RemoveMachine", service_pb2.RemoveMachineRequest.SerializeToString, service_pb2.RemoveMachineResponse.FromString
        )
        self.ListMachines: aio.UnaryUnaryMultiCallable[
            service_pb2.ListMachinesRequest, service_pb2.ListMachinesResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ListMachines", service_pb2.ListMachinesRequest.SerializeToString, service_pb2.ListMachinesResponse.FromString
        )
        self.AddHost: aio.UnaryUnaryMultiCallable[
            service_pb2.AddHostRequest, service_pb2.AddHostResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/AddHost", service_pb2.AddHostRequest.SerializeToString, service_pb2.AddHostResponse.FromString
        )
        self.ChangeHost: aio.UnaryUnaryMultiCallable[
            service_pb2.ChangeHostRequest, service_pb2.ChangeHostResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ChangeHost", service_pb2.ChangeHostRequest.SerializeToString, service_pb2.ChangeHostResponse.FromString
        )
        self.SetHostState: aio.UnaryUnaryMultiCallable[
            service_pb2.SetHostStateRequest, service_pb2.SetHostStateResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/SetHostState", service_pb2.SetHostStateRequest.SerializeToString, service_pb2.SetHostStateResponse.FromString
        )
        self.StartOperation: aio.UnaryUnaryMultiCallable[
            service_pb2.StartOperationRequest, service_pb2.StartOperationResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/StartOperation", service_pb2.StartOperationRequest.SerializeToString, service_pb2.StartOperationResponse.FromString
        )
        self.CancelOperation: aio.UnaryUnaryMultiCallable[
            service_pb2.CancelOperationRequest, service_pb2.CancelOperationResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/CancelOperation", service_pb2.CancelOperationRequest.SerializeToString, service_pb2.CancelOperationResponse.FromString
        )
        self.AddScenario: aio.UnaryUnaryMultiCallable[
            service_pb2.AddScenarioRequest, service_pb2.AddScenarioResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/AddScenario", service_pb2.AddScenarioRequest.SerializeToString, service_pb2.AddScenarioResponse.FromString
        )
        self.AgreeScenario: aio.UnaryUnaryMultiCallable[
            service_pb2.AgreeScenarioRequest, service_pb2.AgreeScenarioResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/AgreeScenario", service_pb2.AgreeScenarioRequest.SerializeToString, service_pb2.AgreeScenarioResponse.FromString
        )
        self.EndScenario: aio.UnaryUnaryMultiCallable[
            service_pb2.EndScenarioRequest, service_pb2.EndScenarioResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/EndScenario", service_pb2.EndScenarioRequest.SerializeToString, service_pb2.EndScenarioResponse.FromString
        )
        self.SteerScenario: aio.UnaryUnaryMultiCallable[
            service_pb2.SteerScenarioRequest, service_pb2.SteerScenarioResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/SteerScenario", service_pb2.SteerScenarioRequest.SerializeToString, service_pb2.SteerScenarioResponse.FromString
        )
        self.AcknowledgeNotice: aio.UnaryUnaryMultiCallable[
            service_pb2.AcknowledgeNoticeRequest, service_pb2.AcknowledgeNoticeResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/AcknowledgeNotice", service_pb2.AcknowledgeNoticeRequest.SerializeToString, service_pb2.AcknowledgeNoticeResponse.FromString
        )
        self.ReportChecks: aio.UnaryUnaryMultiCallable[
            service_pb2.ReportChecksRequest, service_pb2.ReportChecksResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ReportChecks", service_pb2.ReportChecksRequest.SerializeToString, service_pb2.ReportChecksResponse.FromString
        )
        self.TakeAlerts: aio.UnaryUnaryMultiCallable[
            service_pb2.TakeAlertsRequest, service_pb2.TakeAlertsResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/TakeAlerts", service_pb2.TakeAlertsRequest.SerializeToString, service_pb2.TakeAlertsResponse.FromString
        )
        self.Freeze: aio.UnaryUnaryMultiCallable[
            service_pb2.FreezeRequest, service_pb2.FreezeResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/Freeze", service_pb2.FreezeRequest.SerializeToString, service_pb2.FreezeResponse.FromString
        )
        self.ReleaseTasks: aio.UnaryUnaryMultiCallable[
            service_pb2.ReleaseTasksRequest, service_pb2.ReleaseTasksResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/ReleaseTasks", service_pb2.ReleaseTasksRequest.SerializeToString, service_pb2.ReleaseTasksResponse.FromString
        )
        self.OpenEpoch: aio.UnaryUnaryMultiCallable[
            service_pb2.OpenEpochRequest, service_pb2.OpenEpochResponse
        ] = channel.unary_unary(
            "/walle.v1.WalleService/OpenEpoch", service_pb2.OpenEpochRequest.SerializeToString, service_pb2.OpenEpochResponse.FromString
        )
