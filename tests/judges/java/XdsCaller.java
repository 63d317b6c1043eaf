// grpc-java: calls a target again and again, and prints who answers: `ok` and the answer, or `error` and why.
//
//   java -cp JARS XdsCaller.java TARGET INTERVAL_MS
import com.google.protobuf.Empty;
import com.google.protobuf.StringValue;
import io.grpc.CallOptions;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.util.concurrent.TimeUnit;

public class XdsCaller {
  public static void main(String[] args) throws Exception {
    ManagedChannel channel = Grpc.newChannelBuilder(args[0], InsecureChannelCredentials.create()).build();
    MethodDescriptor<Empty, StringValue> who =
        MethodDescriptor.<Empty, StringValue>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("judged.Who/Who")
            .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
            .setResponseMarshaller(ProtoUtils.marshaller(StringValue.getDefaultInstance()))
            .build();
    while (true) {
      try {
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(20, TimeUnit.SECONDS);
        StringValue answer = ClientCalls.blockingUnaryCall(channel, who, options, Empty.getDefaultInstance());
        System.out.println("ok " + answer.getValue());
      } catch (StatusRuntimeException error) {
        System.out.println("error " + String.valueOf(error.getMessage()).replace("\n", " "));
      }
      System.out.flush();
      Thread.sleep(Long.parseLong(args[1]));
    }
  }
}
