# The man page's options and the shells' completions, out of what --help says, so that they
# cannot say anything else.
#
#	goprof-bpf --help | awk -v make=man|bash|zsh|fish -v values="format:pprof folded;..." -f help.awk
#
# With -v command=NAME it is the help of that command.
#
# An option's line is "  -x, --long METAVAR   text"; lines indented by 24 go on with the text.

function flush_option() {
	if (long == "")
		return
	n++
	S[n] = short; L[n] = long; M[n] = meta; T[n] = text; G[n] = group
	short = long = meta = text = ""
}

/^Files are/ || /^Examples:/ { flush_option(); over = 1 }
over { next }
/^[A-Z].*:$/ { flush_option(); group = substr($0, 1, length($0) - 1); next }
group == "" || /^$/ { next }
/^  (-[a-zA-Z], |    )--[a-z]/ {
	flush_option()
	short = substr($0, 3, 1) == "-" ? substr($0, 4, 1) : ""
	rest = substr($0, 9)
	match(rest, /^[a-z-]+/)
	long = substr(rest, 1, RLENGTH)
	rest = substr(rest, RLENGTH + 1)
	if (match(rest, /^ [A-Z]+(\[=[A-Z]+\])?/)) {
		meta = substr(rest, 2, RLENGTH - 1)
		rest = substr(rest, RLENGTH + 1)
	}
	sub(/^ +/, "", rest)
	text = rest
	next
}
/^  -- / { # the command to run: no option of getopt's, but of the page
	flush_option()
	long = "--"
	meta = "COMMAND [ARG...]"
	text = $0
	sub(/^  -- COMMAND \[ARG...\] +/, "", text)
	next
}
/^ +/ && long != "" {
	line = $0
	sub(/^ +/, "", line)
	text = text (text == "" ? "" : line ~ /^[a-z]+: / ? "\n" : " ") line
}

# ---- the man page ----

function roff(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/\n/, "\n.br\n", s)
	if (s ~ /^[.']/)
		s = "\\&" s
	return s
}
function man(  i, last) {
	for (i = 1; i <= n; i++) {
		if (G[i] != last)
			print ".SS " roff(G[i])
		last = G[i]
		print ".TP"
		if (L[i] == "--")
			print "\\fB\\-\\-\\fR \\fI" roff(M[i]) "\\fR"
		else
			print (S[i] == "" ? "" : "\\fB\\-" S[i] "\\fR, ") "\\fB" roff("--" L[i]) "\\fR" \
				(M[i] == "" ? "" : " \\fI" M[i] "\\fR")
		print roff(T[i])
	}
}

# ---- completions ----

function short_text(i,  t) { # up to the first clause
	if (L[i] in V)
		return "one of: " V[L[i]]
	t = T[i]
	sub(/^for probe and enable: /, "", t)
	sub(/\n.*/, "", t)
	sub(/ \(.*/, "", t)
	sub(/[:;].*/, "", t)
	gsub(/['\[\]`"$\\]/, "", t)
	return t
}
function bash(  i, words, args, prefix) {
	for (i = 1; i <= n; i++) {
		if (L[i] == "--")
			continue
		words = words " --" L[i] (S[i] == "" ? "" : " -" S[i])
		if (M[i] != "")
			args = args (args == "" ? "" : "|") "--" L[i] (S[i] == "" ? "" : "|-" S[i])
	}
	prefix = "_goprof_bpf_" (command == "" ? "" : command "_")
	print prefix "options='" substr(words, 2) "'"
	print prefix "with_value='" args "'"
	for (i = 1; i <= n && command == ""; i++)
		if (L[i] in V)
			print "_goprof_bpf_values_" L[i] "='" V[L[i]] "'"
}
function zsh(  i, spec, what) {
	for (i = 1; i <= n; i++) {
		if (L[i] == "--")
			continue
		what = M[i] == "" ? "" : ":" M[i] ":"
		if (M[i] == "PID")
			what = what "_goprof_bpf_pids"
		else if (M[i] == "DIR")
			what = what "_files -/"
		else if (M[i] == "OUT")
			what = what "_files"
		else if (L[i] in V)
			what = what "(" V[L[i]] ")"
		spec = "[" short_text(i) "]" what "'"
		if (S[i] == "")
			print "\t'" (L[i] == "format" ? "*" : "") "--" L[i] (M[i] == "" ? "" : "=") spec
		else
			print "\t'(-" S[i] " --" L[i] ")'{-" S[i] (M[i] == "" ? "" : "+") ",--" L[i] \
				(M[i] == "" ? "" : "=") "}'" spec
	}
}
function fish(  i, line) {
	for (i = 1; i <= n; i++) {
		if (L[i] == "--")
			continue
		line = "complete -c goprof-bpf -n " (command == "" ? "__goprof_bpf_own" : \
			"'__fish_seen_subcommand_from " command "'") " -l " L[i]
		if (S[i] != "")
			line = line " -s " S[i]
		if (M[i] == "PID")
			line = line " -x -a '(__goprof_bpf_pids)'"
		else if (M[i] == "DIR")
			line = line " -x -a '(__fish_complete_directories)'"
		else if (M[i] == "OUT")
			line = line " -r -F"
		else if (L[i] in V)
			line = line " -x -a '" V[L[i]] "'"
		else if (M[i] != "")
			line = line " -x"
		print line " -d '" short_text(i) "'"
	}
}

END {
	flush_option()
	k = split(values, rows, ";")
	for (i = 1; i <= k; i++)
		if (split(rows[i], kv, ":") == 2)
			V[kv[1]] = kv[2]
	if (make == "man")
		man()
	else if (make == "bash")
		bash()
	else if (make == "zsh")
		zsh()
	else if (make == "fish")
		fish()
	if (n < 10) {
		print "help.awk: --help has no options that are understood" >"/dev/stderr"
		exit 1
	}
}
