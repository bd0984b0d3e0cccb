#!/bin/bash
# Fills a template of this folder from what the built program says of itself:
#
#	generate.sh PROGRAM TEMPLATE.in >FILE
#
# A line "@OPTIONS KIND@" becomes the options (help.awk), "@OPTIONS KIND COMMAND@" those of a command,
# @VERSION@ and @DATE@ what they say.
set -eu
program=$1 template=$2
dir=$(dirname "$0")

# The values of an option, from the complaint about a wrong one: "is not a, b or c (try ...".
values() {
	"$program" -p 1 --heap "--$1" '?' 2>&1 | sed -n "s/.*' is not \(.*\) (try.*/\1/p" |
		sed 's/,//g; s/ or / /'
}

all=
for option in source format; do
	some=$(values $option)
	[ -n "$some" ] || { echo "generate.sh: no values for --$option" >&2; exit 1; }
	all="$all$option:$some;"
done
version=$("$program" --version | sed 's/.* //')
# Of the newest entry of the changelog, so that the same source makes the same page.
date=$(LC_ALL=C date -u -d "$(sed -n 's/^ -- .*>  //p' "$dir/changelog" | head -n 1)" +%Y-%m-%d)
while IFS= read -r line; do
	case $line in
	"@OPTIONS "*)
		read -r kind command <<<"${line#@OPTIONS }"
		kind=${kind%@} command=${command%@}
		"$program" ${command:+"$command"} --help |
			awk -v make="$kind" -v command="$command" -v values="$all" -f "$dir/help.awk" ;;
	*)
		line=${line//@VERSION@/$version}
		printf '%s\n' "${line//@DATE@/$date}" ;;
	esac
done <"$template"
