// Prints where a service is, again and again: `found` and its places.
//
//   java -cp 'jars/*:.' Follow.java web [--spring.cloud.consul.port=7680]
import java.util.Arrays;
import java.util.stream.Collectors;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.client.discovery.DiscoveryClient;
import org.springframework.context.annotation.Configuration;

@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class Follow {
  public static void main(String[] args) throws Exception {
    String[] settings = Arrays.copyOfRange(args, 1, args.length);
    DiscoveryClient client = SpringApplication.run(Follow.class, settings).getBean(DiscoveryClient.class);
    while (true) {
      try {
        System.out.println(
            "found "
                + client.getInstances(args[0]).stream()
                    .map(one -> one.getHost() + ":" + one.getPort())
                    .sorted()
                    .collect(Collectors.joining(" ")));
      } catch (RuntimeException error) { // the gateway is away: go on with what was found
        System.out.println("error " + error);
      }
      Thread.sleep(20);
    }
  }
}
