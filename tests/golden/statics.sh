#!/bin/bash
# The test of state must see what it forbids: each bad variable is compiled in a small tree.
set -u
rule=$PWD/tests/statics.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

judged() { # FILE TEXT
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/user/{base,cli,probe/uprobes} "$tree"/obj/{base,cli,probe/uprobes}
	printf '#include <stddef.h>\n%s\n' "$2" >"$tree/user/$1.c"
	echo 'extern int none;' >"$tree/user/base/none.c"
	for f in base/none "$1"; do
		"${CC:-cc}" -O2 -c "$tree/user/$f.c" -o "$tree/obj/$f.o" 2>"$tree/said" || return 2
	done
	(cd "$tree" && sh "$rule" obj) >"$tree/said" 2>&1
}

refuses() { # FILE TEXT NAME
	judged "$1" "$2"
	case $? in
	0) echo "not ok statics/$2 - was let through"; bad=1 ;;
	1) if grep -q "$1.c.*$3" "$tree/said"; then
		echo "ok statics/refuses $2"
	   else
		echo "not ok statics/$2 - the message does not name both: $(cat "$tree/said")"; bad=1
	   fi ;;
	*) echo "not ok statics/$2 - $(cat "$tree/said")"; bad=1 ;;
	esac
}

allows() { # FILE TEXT
	if judged "$1" "$2"; then
		echo "ok statics/allows $2"
	else
		echo "not ok statics/$2 - $(cat "$tree/said")"
		bad=1
	fi
}

refuses base/x 'static int calls; int f(void); int f(void) { return calls++; }' calls
refuses base/x 'int f(void); int f(void) { static int last = 7; return last++; }' last
refuses base/x 'int shared = 3;' shared
refuses base/x '__attribute__((common)) int tentative;' tentative
refuses base/x '__thread int of_thread;' of_thread
refuses base/x '__thread int of_thread = 1;' of_thread
refuses base/x 'const char *name = "it may be set";' name
refuses base/x '_Bool volatile stopped;' stopped
refuses probe/uprobes/attacher 'int the_job, another = 1;' another
refuses base/hash 'const int no_secret;' secret
allows base/x 'static const int primes[] = { 2, 3 }; int f(int i); int f(int i) { return primes[i]; }'
allows base/x 'const char *const names[] = { "a", "b" };'
allows base/x 'int f(void); int (*const calls[])(void) = { f, f };'
allows probe/uprobes/attacher 'int the_job;'
allows cli/x 'int shared = 3;'

# What was not compiled was not looked at.
rm -rf "${tree:?}"/*
mkdir -p "$tree/user/base" "$tree/obj/base"
echo 'int shared;' >"$tree/user/base/x.c"
if (cd "$tree" && sh "$rule" obj) >"$tree/said" 2>&1; then
	echo "not ok statics/no object - was let through"
	bad=1
else
	echo "ok statics/refuses a source without an object"
fi
exit $bad
