/** A virtual machine finds null pointers, and stops its threads, by faults: LAPI leaves its handlers alone. */
public class Unchanged {
    int[] field;

    static native int unchanged();

    static int of(Unchanged object) {
        return object.field.length;
    }

    public static void main(String[] arguments) {
        System.load(arguments[0]);
        int changes = unchanged(), caught = 0;
        for (int i = 0; i < 50000; i++) {
            try {
                of(i % 100 == 0 ? new Unchanged() : null);
            } catch (NullPointerException expected) {
                caught++;
            }
        }
        System.out.println(changes + " changes, " + caught + " null pointers");
        System.exit(caught == 50000 ? 0 : 1);
    }
}
