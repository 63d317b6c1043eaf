// Calls a service through Spring Cloud LoadBalancer, again and again: `ok` and what was answered, or `error`.
//
//   java -cp 'jars/*:.' Call.java web [--spring.cloud.consul.port=7680]
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.loadbalancer.support.LoadBalancerClientFactory;
import org.springframework.context.annotation.Configuration;
import reactor.core.publisher.Mono;

@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class Call {
  public static void main(String[] args) throws Exception {
    String[] settings = Arrays.copyOfRange(args, 1, args.length);
    var balancers = SpringApplication.run(Call.class, settings).getBean(LoadBalancerClientFactory.class);
    HttpClient http = HttpClient.newHttpClient();
    while (true) {
      try {
        ServiceInstance chosen = Mono.from(balancers.getInstance(args[0]).choose()).block().getServer();
        HttpRequest request = HttpRequest.newBuilder(URI.create(chosen.getUri() + "/")).timeout(Duration.ofSeconds(10)).build();
        System.out.println("ok " + http.send(request, HttpResponse.BodyHandlers.ofString()).body());
      } catch (Exception error) { // nobody to choose, or nobody who answers
        System.out.println("error " + error);
      }
      Thread.sleep(5);
    }
  }
}
