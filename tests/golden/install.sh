#!/bin/bash
# What `make install` and `make deb` put where; that man page and completions have every option
# there is, and no other; and that the shells complete with them.
set -u
. tests/support/lib.sh
run_make() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make O="${O#"$PWD"/}" "$@"; } # as the outer make has it, or all is compiled anew
ROOTFS="$TMP/a root"

# ---- installing ----

run_make install DESTDIR="$ROOTFS" PREFIX=/opt/x >"$TMP/said" 2>&1 || fail install/install "$(tail -n 3 "$TMP/said")"
cat >"$TMP/want" <<-END
	644 share/bash-completion/completions/goprof-bpf
	644 share/fish/vendor_completions.d/goprof-bpf.fish
	644 share/man/man1/goprof-bpf.1
	644 share/zsh/site-functions/_goprof-bpf
	755 bin/goprof-bpf
END
(cd "$ROOTFS/opt/x" && find . -type f -printf '%m %P\n' | sort) >"$TMP/got"
if diff "$TMP/want" "$TMP/got" && [ "$(ls "$ROOTFS")" = opt ]; then
	pass install/install
else
	fail install/install "other files than these"
fi
cmp -s "$ROOTFS/opt/x/bin/goprof-bpf" "$GOPROF" && [ "$("$ROOTFS/opt/x/bin/goprof-bpf" --version)" = "$("$GOPROF" --version)" ] &&
	pass install/runs || fail install/runs "it does not say its version"

# ---- every option, and no other ----

# As getopt knows them: the names in opt.c's table.
sed -n 's/^\t{ "\([a-z-]*\)", \(no\|required\)_argument.*/--\1/p' user/cli/opt.c | sort >"$TMP/options"
[ "$(wc -l <"$TMP/options")" -gt 20 ] || fail install/options "opt.c's table is not understood"
man=$ROOTFS/opt/x/share/man/man1/goprof-bpf.1
bash_file=$ROOTFS/opt/x/share/bash-completion/completions/goprof-bpf
zsh_file=$ROOTFS/opt/x/share/zsh/site-functions/_goprof-bpf
fish_file=$ROOTFS/opt/x/share/fish/vendor_completions.d/goprof-bpf.fish
same() { # NAME: a list of options on stdin
	sort -u >"$TMP/have"
	if diff "$TMP/options" "$TMP/have" >"$TMP/diff"; then
		pass "install/options of $1"
	else
		fail "install/options of $1" "$(grep '^[<>]' "$TMP/diff" | tr '\n' ' ')"
	fi
}
"$GOPROF" --help | sed -n '/^What to/,/^Files/s/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p' | same help
sed -n '/^\.SH OPTIONS/,/^\.SH COMMANDS/p' "$man" | sed 's/\\-/-/g' |
	grep -oE '^(\\fB-[a-zA-Z]\\fR, )?\\fB--[a-z-]+' | sed 's/.*--/--/' | same man
bash -c '. "$1"; printf "%s\n" $_goprof_bpf_options' - "$bash_file" | grep '^--' | same bash
sed -n '/^options=(/,/^)/p' "$zsh_file" | grep -oE -- "--[a-z-]+(=|\[|})" | sed 's/[=[}]*$//' | same zsh
grep -oE '__goprof_bpf_own -l [a-z-]+' "$fish_file" | sed 's/.* /--/' | same fish

# ---- the man page ----

if command -v man >/dev/null; then
	said=$(MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$man" 2>&1 >/dev/null)
	[ -z "$said" ] && pass install/man || fail install/man "$(printf '%s' "$said" | head -n 2)"
	text=$(MANWIDTH=80 LC_ALL=C man --nh --nj -l "$man" 2>/dev/null | col -bx)
	for part in "$("$GOPROF" --version)" 'EXIT STATUS' 'doctor' 'folded, text, or flame' 'shorter ones in proportion'; do
		printf '%s' "$text" | tr -s ' \n' '  ' | grep -qF -- "$part" || fail "install/man says $part" "it does not"
	done
else
	skip install/man "there is no man here"
fi

# ---- the shells ----

complete_bash() { # WORD...: the last one is completed
	bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _goprof_bpf; echo "${COMPREPLY[*]}"' "$bash_file" "$@" 2>&1
}
is() { [ "$2" = "$3" ] && pass "install/$1" || fail "install/$1" "'$3', not '$2'"; }
is "bash: an option" "--mutex --mutex-fraction" "$(complete_bash goprof-bpf --mut)"
is "bash: a value" "flame" "$(complete_bash goprof-bpf -p 1 --format fl)"
is "bash: a value behind =" "read" "$(complete_bash goprof-bpf --heap --source = r)"
is "bash: a command" "doctor" "$(complete_bash goprof-bpf doc)"
is "bash: a command's option" "--wide" "$(complete_bash goprof-bpf ps --w)"
is "bash: options of heapdump" "--holders --hprof" "$(complete_bash goprof-bpf heapdump --h | tr ' ' '\n' | grep 'ho\|hp' | paste -sd' ')"
is "bash: a value of heapdump" "flame" "$(complete_bash goprof-bpf heapdump x --format fl)"
is "bash: options of trace" "--perfetto --pprof" "$(complete_bash goprof-bpf trace --p | tr ' ' '\n' | sort | paste -sd' ')"
is "bash: a kind of trace" "syscall" "$(complete_bash goprof-bpf trace x --pprof sysc)"
is "bash: no option behind --" "" "$(complete_bash goprof-bpf -- --mut)"
# At a real prompt: what the line is once Tab was pressed. No file of the user's is read, nor bash-completion.
typed_bash() { # LINE
	mkdir -p "$TMP/here/my dir" "$TMP/bin"
	touch "$TMP/here/a file"
	printf '#!/bin/sh\nprintf "<%%s>" "$@" >"$SAID"\n' >"$TMP/bin/goprof-bpf" && chmod +x "$TMP/bin/goprof-bpf"
	rm -f "$TMP/bash.out"
	(cd "$TMP/here" && { printf '. %q\n%s\t\nexit\n' "$bash_file" "$1"; sleep 1; } |
		HOME=$TMP PATH=$TMP/bin:$PATH SAID=$TMP/bash.out TERM=dumb INPUTRC=/dev/null timeout 10 script -qc 'bash --norc --noprofile -i' /dev/null >/dev/null 2>&1)
	cat "$TMP/bash.out" 2>/dev/null
}
if command -v script >/dev/null; then
	is "bash: a folder with a blank" "<-o><my dir/>" "$(typed_bash 'goprof-bpf -o m')"
	is "bash: the same behind =" "<--output=my dir/>" "$(typed_bash 'goprof-bpf --output=m')"
	is "bash: a command's files" "<--><cat><a file>" "$(typed_bash 'goprof-bpf -- cat a')"
else
	skip install/bash "there is no script(1) here"
fi
if command -v fish >/dev/null; then
	complete_fish() {
		HOME=$TMP fish --no-config -c "source '$fish_file'; complete -C '$1'" 2>&1 | cut -f1 | paste -sd' '
	}
	is "fish: an option" "--mutex --mutex-fraction" "$(complete_fish 'goprof-bpf --mut')"
	is "fish: a value" "flame folded" "$(complete_fish 'goprof-bpf --format f' | tr ' ' '\n' | sort | paste -sd' ')"
	is "fish: a command" "doctor" "$(complete_fish 'goprof-bpf doc')"
	is "fish: an option of heapdump" "--holders" "$(complete_fish 'goprof-bpf heapdump --ho')"
	is "fish: an option of trace" "--perfetto" "$(complete_fish 'goprof-bpf trace --pe')"
	is "fish: a dump" "Makefile" "$(complete_fish 'goprof-bpf heapdump Makef')"
	is "fish: a command's files" "Makefile" "$(complete_fish 'goprof-bpf --cpu -- cat Makef')"
else
	skip install/fish "there is no fish here"
fi
if command -v zsh >/dev/null; then
	# A real zsh, on a terminal of its own, asked by the Tab key.
	complete_zsh() { # LINE: what it becomes
		HOME=$TMP zsh -f -c '
			zmodload zsh/zpty
			zpty z "PS1= TERM=dumb zsh -f -i"
			zpty -w z "fpath=(\"'"${zsh_file%/*}"'\" \$fpath); autoload -Uz compinit; compinit -D -u"
			zpty -w z "show() { print -r -- \"<\$BUFFER>\" >'"$TMP"'/zsh.out; zle kill-buffer }; zle -N show; bindkey ^G show; unsetopt zle_bracketed_paste; print rea''dy >'"$TMP"'/zsh.ready"
			for i in {1..200}; do [[ -s '"$TMP"'/zsh.ready ]] && break; sleep 0.05; done
			zpty -n -w z "$1"$'"'\\t\\a'"'
			for i in {1..200}; do [[ -s '"$TMP"'/zsh.out ]] && break; sleep 0.05; done
			zpty -d z' - "$1" >/dev/null 2>&1
		cat "$TMP/zsh.out" 2>/dev/null
		rm -f "$TMP/zsh.out" "$TMP/zsh.ready"
	}
	is "zsh: an option" "<goprof-bpf --goroutine>" "$(complete_zsh 'goprof-bpf --goro' | sed 's/ >/>/')"
	is "zsh: a value" "<goprof-bpf --format=flame>" "$(complete_zsh 'goprof-bpf --format=fl' | sed 's/ >/>/')"
	is "zsh: a command" "<goprof-bpf doctor>" "$(complete_zsh 'goprof-bpf doc' | sed 's/ >/>/')"
	is "zsh: a command's option" "<goprof-bpf ps --wide>" "$(complete_zsh 'goprof-bpf ps --w' | sed 's/ >/>/')"
	is "zsh: an option of heapdump" "<goprof-bpf heapdump --holders=>" "$(complete_zsh 'goprof-bpf heapdump --ho' | sed 's/ >/>/')"
	is "zsh: an option of trace" "<goprof-bpf trace --perfetto=>" "$(complete_zsh 'goprof-bpf trace --pe' | sed 's/ >/>/')"
	is "zsh: a command to run" "<goprof-bpf -- user/package/deb.sh>" "$(complete_zsh 'goprof-bpf -- user/package/de' | sed 's/ >/>/')"
else
	skip install/zsh "there is no zsh here"
fi

# ---- and away again ----

touch "$ROOTFS/opt/x/bin/other"
run_make uninstall DESTDIR="$ROOTFS" PREFIX=/opt/x >"$TMP/said" 2>&1
is "uninstall leaves only what is others'" bin/other "$(cd "$ROOTFS/opt/x" && find . -type f -printf '%P\n')"
finish
