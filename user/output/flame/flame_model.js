// The profile of the page as trees; flame.c describes its format.

const $ = (id) => document.getElementById(id);
const ROW = 20, NARROW = 1, FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

// ---- the data --------------------------------------------------------------------------------

let D;
try {
	D = JSON.parse($('data').textContent);
} catch (e) {
	$('broken').textContent = 'The data of this page cannot be read, perhaps because the file was cut: ' + e.message;
	return;
}
const NT = D.types.length, NF = D.funcs.length / 2, NFR = D.frames.length / 2;

// Characters that would hide or reorder text are shown by their numbers.
const show = (s) => s.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g,
	(c) => c === '\ufffd' ? c : '\\u{' + c.charCodeAt(0).toString(16) + '}');
const text = D.strings.map(show);

function decodeTree(tokens) {
	let n = 0;
	for (const t of tokens)
		n += t >= 0;
	const parent = new Int32Array(n), frame = new Int32Array(n);
	let at = 0, cur = -1;
	for (let t of tokens) {
		if (t < 0) {
			for (; t < 0; t++)
				cur = parent[cur];
		} else {
			parent[at] = cur;
			frame[at] = t;
			cur = at++;
		}
	}
	return { n, parent, frame };
}

function decodeSelf(rows) {
	const stride = 2 + NT, n = rows.length / stride;
	const node = new Int32Array(n), labels = new Int32Array(n);
	const value = D.types.map(() => new Float64Array(n));
	for (let i = 0, at = 0, last = 0; i < n; i++) {
		last += rows[at++];
		node[i] = last;
		labels[i] = rows[at++];
		for (let t = 0; t < NT; t++)
			value[t][i] = rows[at++];
	}
	return { n, node, labels, value };
}

const base = decodeTree(D.tree), self = decodeSelf(D.self);
D.tree = D.self = null;

// ---- values for people: the figures of `go tool pprof` -----------------------------------------

const UNITS = {
	bytes: [['B', 1], ['kB', 2 ** 10], ['MB', 2 ** 20], ['GB', 2 ** 30], ['TB', 2 ** 40], ['PB', 2 ** 50]],
	nanoseconds: [['ns', 1], ['us', 1e3], ['ms', 1e6], ['s', 1e9], ['hrs', 3600e9]],
};
const grouped = (v) => String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',');

function amount(v, unit) {
	const units = UNITS[unit];
	if (!units || !v)
		return grouped(v);
	let best = units[0];
	for (const u of units)
		if (v / u[1] >= 1)
			best = u;
	return (v / best[1]).toFixed(2).replace(/\.00$/, '') + ' ' + best[0];
}

function percent(v, of) {
	const p = of > 0 ? v / of * 100 : 0;
	return p === 0 ? '0%' : p >= 99.95 ? '100%' : p >= 1 ? p.toFixed(2) + '%' : p >= 0.01 ? p.toPrecision(2) + '%' : 'under 0.01%';
}
const unitOf = (t) => D.types[t][1];

// ---- items: what a frame of the drawing stands for -----------------------------------------------
// 0 to NF: a function; from there a line of one (or an address); from there a label's value.

const LINE0 = NF, LABEL0 = NF + NFR, NOLABEL = LABEL0 + text.length;

const funcName = (f) => text[D.funcs[2 * f]] || '[no name]';
const funcFile = (f) => text[D.funcs[2 * f + 1]];
const funcOf = (item) => item < LINE0 ? item : item < LABEL0 ? D.frames[2 * (item - LINE0)] : -1;
const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);

function place(f, line) { // "/src/main.go:40", "" when it is not known
	if (line < 0)
		return funcFile(f) + '  ' + text[-line];
	return funcFile(f) && funcFile(f) + (line ? ':' + line : '');
}

const names = new Map();
function nameOf(item) {
	let s = names.get(item);
	if (s !== undefined)
		return s;
	if (item < 0)
		s = 'all';
	else if (item < LINE0)
		s = funcName(item);
	else if (item < LABEL0) {
		const f = funcOf(item), line = D.frames[2 * (item - LINE0) + 1];
		s = funcName(f) + (line < 0 ? '+' + text[-line] : line ? ' ' + baseName(funcFile(f)) + ':' + line : '');
	} else
		s = item === NOLABEL ? '[no ' + text[S.key] + ']' : (text[item - LABEL0] || '""');
	names.set(item, s);
	return s;
}

// ---- whose code a function is --------------------------------------------------------------------

const STD = new Set(('archive bufio builtin bytes cmp compress container context crypto database debug embed encoding errors ' +
	'expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp slices sort ' +
	'strconv strings structs sync syscall testing text time unicode unique unsafe uuid vendor weak arena simd').split(' '));

function packageOf(name) {
	const end = name.search(/[([]/), head = end < 0 ? name : name.slice(0, end);
	const slash = head.lastIndexOf('/'), dot = head.indexOf('.', slash + 1);
	return dot < 0 ? '' : head.slice(0, dot);
}

function ownerOf(f) {
	const name = funcName(f), pkg = packageOf(name);
	if (name[0] === '[' || !pkg)
		return name[0] === '[' || funcFile(f) ? 'no Go code' : 'kernel, C';
	if (pkg === 'main')
		return 'main';
	if (pkg === 'runtime' || pkg.startsWith('runtime/') || pkg.startsWith('internal/runtime/'))
		return 'Go runtime';
	const part = pkg.replace(/%2e/g, '.').split('/');
	if (STD.has(part[0]))
		return 'standard library';
	if (!part[0].includes('.'))
		return part[0];
	return part.slice(0, /^(github|gitlab|bitbucket)\./.test(part[0]) || part[0] === 'golang.org' ? 3 : 2).join('/');
}

// Fills for light and dark; text on them has a contrast of 7 and 4.5 or more. Neighbours in this
// list differ in lightness as well as in hue.
const FIXED = {
	'main': ['#f5b26b', '#96551a'],
	'Go runtime': ['#c3cad4', '#4b5563'],
	'standard library': ['#9ccbed', '#24628f'],
	'no Go code': ['#dedad2', '#5c564c'],
	'kernel, C': ['#d3c6bd', '#66554a'],
};
const PALETTE = [
	['#a3d9b1', '#2a6e45'], ['#e9b0d2', '#87406b'], ['#f3e08a', '#6f6114'], ['#c6b8ec', '#5e4c96'],
	['#f2a897', '#92432f'], ['#9fdcd8', '#1f6a67'], ['#d2dc8f', '#596519'], ['#dcc09c', '#6f5534'],
];
const OTHERS = ['#d9d2e0', '#544c60'], LABEL = ['#fdfdf3', '#23272e'], ROOT = ['#e4e8ed', '#2b323b'];
const MATCH = ['#a3005f', '#ff7ac2'], MATCH_TEXT = ['#ffffff', '#1a0010'];

const owner = Array.from({ length: NF }, (_, f) => ownerOf(f));
const ownerColor = new Map();

function sumByOwner(t) {
	const sums = new Map();
	for (let i = 0; i < self.n; i++) {
		const o = owner[D.frames[2 * base.frame[self.node[i]]]];
		sums.set(o, (sums.get(o) || 0) + self.value[t][i]);
	}
	return [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

function assignColors() {
	let next = 0;
	const all = NT ? sumByOwner(D.main).map((x) => x[0]) : [];
	for (const o of new Set(all.concat(owner)))
		ownerColor.set(o, FIXED[o] || PALETTE[next++] || OTHERS);
}

// ---- trees ---------------------------------------------------------------------------------------

function grow(a, n) {
	const b = new a.constructor(n);
	b.set(a);
	return b;
}

class Tree { // node 0 is the root; a parent's number is less than its child's
	constructor(room) {
		this.n = 1;
		this.parent = new Int32Array(room);
		this.item = new Int32Array(room);
		this.first = new Int32Array(room);
		this.next = new Int32Array(room);
		this.line = new Int32Array(room); // frame it was seen with, plus 1; -1 several
		this.slots = new Int32Array(2 ** Math.ceil(Math.log2(room * 2)));
		this.item[0] = -1;
		this.totals = [];
		this.selves = [];
		this.sorted = new Map();
	}
	slot(p, item) {
		let h = Math.imul(p, 0x9e3779b1) ^ Math.imul(item + 1, 0x85ebca6b);
		h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
		const mask = this.slots.length - 1;
		for (let i = (h ^ (h >>> 13)) & mask; ; i = (i + 1) & mask) {
			const n = this.slots[i];
			if (!n || (this.parent[n] === p && this.item[n] === item))
				return i;
		}
	}
	bigger() {
		for (const k of ['parent', 'item', 'first', 'next', 'line'])
			this[k] = grow(this[k], this.n * 2);
		this.slots = new Int32Array(this.slots.length * 2);
		for (let n = 1; n < this.n; n++)
			this.slots[this.slot(this.parent[n], this.item[n])] = n;
	}
	child(p, item, frame) {
		let i = this.slot(p, item), n = this.slots[i];
		if (!n) {
			if (this.n === this.parent.length) {
				this.bigger();
				i = this.slot(p, item);
			}
			n = this.slots[i] = this.n++;
			this.parent[n] = p;
			this.item[n] = item;
			this.next[n] = this.first[p];
			this.first[p] = n;
			this.line[n] = frame + 1;
		} else if (this.line[n] !== frame + 1)
			this.line[n] = -1;
		return n;
	}
	total(t) {
		if (!this.totals[t]) {
			const own = new Float64Array(this.n);
			for (let i = 0; i < self.n; i++)
				own[this.of[i]] += self.value[t][i];
			const sum = own.slice();
			for (let n = this.n - 1; n > 0; n--)
				sum[this.parent[n]] += sum[n];
			this.selves[t] = own;
			this.totals[t] = sum;
		}
		return this.totals[t];
	}
	own(t) {
		this.total(t);
		return this.selves[t];
	}
	children(n, t) { // largest first
		const key = n * 4 + t;
		let c = this.sorted.get(key);
		if (!c) {
			const sum = this.total(t);
			c = [];
			for (let k = this.first[n]; k; k = this.next[k])
				if (sum[k] > 0)
					c.push(k);
			c.sort((a, b) => sum[b] - sum[a] || (nameOf(this.item[a]) < nameOf(this.item[b]) ? -1 : 1));
			this.sorted.set(key, c);
		}
		return c;
	}
}

const S = { type: D.main, lines: false, key: -1, leaf: true, callers: false, flip: false, query: '', regex: false, zoom: 0 };
let V; // the tree that is drawn

function labelItem(set, key) {
	const row = D.labels[set];
	for (let i = 0; i < row.length; i += 2)
		if (row[i] === key)
			return LABEL0 + row[i + 1];
	return -1;
}

// From the root to the leaf, with the label at the leaf, every node is mapped once.
function buildPlain(tree, item) {
	const map = new Int32Array(base.n);
	for (let n = 0; n < base.n; n++)
		map[n] = tree.child(base.parent[n] < 0 ? 0 : map[base.parent[n]], item(base.frame[n]), base.frame[n]);
	for (let i = 0; i < self.n; i++) {
		const label = S.key < 0 ? -1 : labelItem(self.labels[i], S.key);
		tree.of[i] = label < 0 ? map[self.node[i]] : tree.child(map[self.node[i]], label, -1);
	}
}

// Any other tree is built sample by sample.
function buildPaths(tree, item) {
	const path = [];
	for (let i = 0; i < self.n; i++) {
		let at = 0, label = -1;
		if (S.key >= 0) {
			label = labelItem(self.labels[i], S.key);
			if (label < 0 && !S.leaf)
				label = NOLABEL;
		}
		path.length = 0;
		for (let n = self.node[i]; n >= 0; n = base.parent[n])
			path.push(base.frame[n]);
		if (label >= 0 && S.leaf === S.callers)
			at = tree.child(at, label, -1);
		for (let k = 0; k < path.length; k++) {
			const frame = path[S.callers ? k : path.length - 1 - k];
			at = tree.child(at, item(frame), frame);
		}
		if (label >= 0 && S.leaf !== S.callers)
			at = tree.child(at, label, -1);
		tree.of[i] = at;
	}
}

function build() {
	const tree = new Tree(Math.max(1024, base.n + 1));
	const item = S.lines ? (frame) => LINE0 + frame : (frame) => D.frames[2 * frame];
	tree.of = new Int32Array(self.n);
	names.delete(NOLABEL);
	if (S.callers || (S.key >= 0 && !S.leaf))
		buildPaths(tree, item);
	else
		buildPlain(tree, item);
	V = tree;
	matchAll();
}

// ---- search ----------------------------------------------------------------------------------------

let hit = null, hitIn, hitItems = 0; // by node: it matches, and what of it is in frames that do

function matcher() {
	if (!S.regex) {
		const q = S.query.toLowerCase();
		return (s) => s.toLowerCase().includes(q);
	}
	const re = new RegExp(S.query, 'i');
	return (s) => re.test(s);
}

function matchAll() {
	let is;
	hit = null;
	$('query').classList.remove('bad');
	if (S.query) {
		try {
			is = matcher();
		} catch (e) {
			$('query').classList.add('bad');
			$('found').textContent = 'not a regular expression';
			return;
		}
	}
	if (!is) {
		$('found').textContent = '';
		return;
	}
	const known = new Map(), sum = V.total(S.type), seen = new Set();
	hit = new Uint8Array(V.n);
	hitIn = new Float64Array(V.n);
	for (let n = V.n - 1; n > 0; n--) {
		const item = V.item[n];
		let m = known.get(item);
		if (m === undefined) {
			const f = funcOf(item);
			m = is(nameOf(item)) || (f >= 0 && is(funcFile(f)));
			known.set(item, m);
		}
		if (m && sum[n] > 0) {
			hit[n] = 1;
			hitIn[n] = sum[n];
			seen.add(item);
		}
		hitIn[V.parent[n]] += hitIn[n];
	}
	hitItems = seen.size;
	$('found').textContent = hitItems ? percent(hitIn[0], sum[0]) : 'none';
	$('found').title = amount(hitIn[0], unitOf(S.type)) + ' in stacks with one of ' + grouped(hitItems) + ' frames that match';
}
