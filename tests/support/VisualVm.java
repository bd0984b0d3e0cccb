// tests/support/VisualVm.java - what VisualVM's library reads in an HPROF file, in the words of hprof.py:
//
//	java -cp 'CLASSES:org-graalvm-visualvm-lib-jfluid-heap.jar' VisualVm FILE
//
// "total OBJECTS BYTES" of the classes that are not Java's, "thread NAME FUNCTION...", "size ADDRESS BYTES",
// "retained ADDRESS BYTES", and "distance ADDRESS N": steps to the nearest root, -1: none.
import java.io.File;
import java.io.PrintStream;
import java.util.Iterator;
import java.util.List;
import org.graalvm.visualvm.lib.jfluid.heap.*;

public class VisualVm {
    static boolean isJava(JavaClass c) {
        return c.getName().startsWith("java.lang.") || c.isArray();
    }

    static void totals(Heap h, PrintStream out) {
        long objects = 0, bytes = 0;
        for (Object o : h.getAllClasses()) {
            JavaClass c = (JavaClass) o;
            if (isJava(c)) continue;
            objects += c.getInstancesCount();
            bytes += c.getAllInstancesSize();
        }
        out.println("total " + objects + " " + bytes);
    }

    static String text(Instance s) {
        StringBuilder to = new StringBuilder();
        for (Object c : ((PrimitiveArrayInstance) s.getValueOfField("value")).getValues()) to.append(c);
        return to.toString().replace(' ', '_');
    }

    static void threads(Heap h, PrintStream out) {
        for (Object o : h.getGCRoots()) {
            if (!(o instanceof ThreadObjectGCRoot)) continue;
            ThreadObjectGCRoot t = (ThreadObjectGCRoot) o;
            out.print("thread " + text((Instance) t.getInstance().getValueOfField("name")));
            for (StackTraceElement e : t.getStackTrace()) {
                String name = e.getClassName() + "." + e.getMethodName();
                out.print(" " + name.replace("(no package).", ""));
            }
            out.println();
        }
    }

    static int distance(Instance i) {
        int n = 0;
        for (; i != null && !i.isGCRoot(); n++) i = i.getNearestGCRootPointer();
        return i == null ? -1 : n;
    }

    public static void main(String[] args) throws Exception {
        Heap h = HeapFactory.createHeap(new File(args[0]));
        PrintStream out = new PrintStream(new java.io.BufferedOutputStream(System.out));
        totals(h, out);
        threads(h, out);
        for (Iterator<?> all = h.getAllInstancesIterator(); all.hasNext();) {
            Instance i = (Instance) all.next();
            if (isJava(i.getJavaClass())) continue;
            String id = " " + Long.toHexString(i.getInstanceId()) + " ";
            out.println("size" + id + i.getSize());
            out.println("retained" + id + i.getRetainedSize());
            out.println("distance" + id + distance(i));
        }
        out.close();
    }
}
