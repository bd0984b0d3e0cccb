# Runs programs of other architectures. Source it after lib.sh.

# What runs programs of an architecture; nothing: the kernel.
emulator() {
	local cpu=$1 out
	case $1 in
	"" | "$GOARCH_HOST") return ;;
	386)   [ "$GOARCH_HOST" = amd64 ] && return || cpu=i386 ;;
	arm64) cpu=aarch64 ;;
	mips*le) cpu=${cpu%le}el ;;
	esac
	out=$O/programs/qemu-$cpu-static
	command -v "qemu-$cpu-static" || { made "$out" testdata/programs/heapworld -- fetch_emulator "$out" && echo "$out"; }
}
fetch_emulator() {
	mkdir -p "$TMP/qemu" && (
		cd "$TMP/qemu" && { [ -n "$(ls)" ] || fetch_debs qemu-user-static; } &&
			dpkg-deb --fsys-tarfile qemu-user-static*.deb | tar xO "./usr/bin/$(basename "$1")" >"$1.new"
	) && chmod +x "$1.new" && mv "$1.new" "$1"
}
