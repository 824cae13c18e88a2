import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** mongo-java-server in memory, at the port PEER_PORT. */
public class Peer {
    public static void main(String[] arguments) throws InterruptedException {
        new MongoServer(new MemoryBackend()).bind("127.0.0.1", Integer.parseInt(System.getenv("PEER_PORT")));
        Thread.currentThread().join();
    }
}
