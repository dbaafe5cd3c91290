#!/usr/bin/env bash
# Links librpmem.so.1 from the archive that cargo has built, in the folder RELEASE: cargo itself
# makes no library whose symbols stand at a version.
set -eu
cd "$(dirname "$0")"
archive=$RELEASE/librpmem.a library=$RELEASE/librpmem.so.1
[ "$library" -ot "$archive" ] || [ "$library" -ot librpmem.map ] || exit 0
# A name of its own, so that a program that runs keeps the library that it has mapped. The threads
# and the buffers of sessions outlive a dlclose.
${CC:-cc} -shared -o "$library.new" -Wl,-soname,librpmem.so.1 -Wl,--version-script=librpmem.map \
	-Wl,--gc-sections -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--undefined-version \
	$(sed -n 's/^\t\t\(rpmem_[a-z_]*\);$/-Wl,-u,\1/p' librpmem.map) \
	"$archive" -lpthread -ldl -lm -lgcc_s
mv "$library.new" "$library"
