// tests/support/Shark.java - what LeakCanary's shark reads in an HPROF file:
//
//	java -cp 'CLASSES:JARS/*' Shark FILE
//
// "total OBJECTS BYTES" of the classes that are not Java's, "edge ADDRESS FIELD ADDRESS" of their fields, and
// "thread NAME".
import java.io.File;
import java.io.PrintStream;
import java.util.Iterator;
import shark.*;

public class Shark {
    static void fields(HeapObject.HeapInstance i, PrintStream out) {
        for (Iterator<HeapField> all = i.readFields().iterator(); all.hasNext();) {
            HeapField f = all.next();
            HeapValue to = f.getValue();
            if (!to.isNonNullReference() || f.getName().equals("contents")) continue;
            if (to.getAsObject() == null) throw new IllegalStateException("a reference to nothing");
            out.println("edge " + Long.toHexString(i.getObjectId()) + " " + f.getName() + " "
                + Long.toHexString(to.getAsObjectId()));
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new java.io.BufferedOutputStream(System.out));
        long objects = 0, bytes = 0;
        try (CloseableHeapGraph g = HprofHeapGraph.Companion.openHeapGraph(new File(args[0]), null,
                HprofRecordTag.Companion.getRootTags())) {
            for (Iterator<HeapObject.HeapInstance> all = g.getInstances().iterator(); all.hasNext();) {
                HeapObject.HeapInstance i = all.next();
                if (i.getInstanceClassName().startsWith("java.lang.")) continue;
                objects++;
                bytes += i.getByteSize();
                fields(i, out);
            }
            Iterator<HeapObject.HeapInstance> threads = g.findClassByName("java.lang.Thread").getInstances().iterator();
            while (threads.hasNext())
                out.println("thread " + threads.next().get("java.lang.Thread", "name").getValue().readAsJavaString());
        }
        out.println("total " + objects + " " + bytes);
        out.close();
    }
}
