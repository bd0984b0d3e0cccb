// Where each frame is, and how it looks. Names are put on the canvas by fillText only.

// ---- layout: which frames are where ------------------------------------------------------------------

let rows = []; // rows[depth]: { x, w, node, rest }, left to right; rest: frames too narrow, together
let width = 0;

function ancestors(n) {
	const up = [];
	for (; n > 0; n = V.parent[n])
		up.push(n);
	up.push(0);
	return up.reverse();
}

function put(depth, x, w, node, rest) {
	(rows[depth] = rows[depth] || []).push({ x, w, node, rest });
}

function layout() {
	const sum = V.total(S.type);
	rows = [];
	if (!NT || !(sum[0] > 0))
		return;
	if (!(sum[S.zoom] > 0))
		S.zoom = 0;
	const up = ancestors(S.zoom), scale = width / sum[S.zoom];
	up.forEach((n, depth) => put(depth, 0, width, n, 0));
	let level = [[S.zoom, 0]];
	for (let depth = up.length; level.length; depth++) {
		const below = [];
		for (const [n, x0] of level) {
			const kids = V.children(n, S.type);
			let x = x0, i = 0, rest = 0;
			for (; i < kids.length && sum[kids[i]] * scale >= NARROW; i++) {
				const w = sum[kids[i]] * scale;
				put(depth, x, w, kids[i], 0);
				below.push([kids[i], x]);
				x += w;
			}
			const many = kids.length - i;
			for (; i < kids.length; i++)
				rest += sum[kids[i]];
			if (rest * scale >= NARROW)
				put(depth, x, rest * scale, n, many);
		}
		level = below;
	}
}

// ---- drawing ---------------------------------------------------------------------------------------------

const canvas = $('graph');
let ctx = canvas.getContext('2d');
let hover = null, focus = null, printing = false; // rects of rows
const isDark = () => !printing && document.documentElement.dataset.theme === 'dark';
const widths = new Map();

function textWidth(s) {
	let w = widths.get(s);
	if (w === undefined) {
		if (widths.size > 20000)
			widths.clear();
		w = ctx.measureText(s).width;
		widths.set(s, w);
	}
	return w;
}

// The longest form of a name that fits: with its path, with its package, without it, the method, cut.
function fit(name, room) {
	if (textWidth(name) <= room)
		return name;
	const end = name.search(/[([]/), head = end < 0 ? name : name.slice(0, end);
	const slash = head.lastIndexOf('/') + 1;
	if (slash && textWidth(name.slice(slash)) <= room)
		return name.slice(slash);
	const dot = head[0] === '[' ? -1 : name.indexOf('.', slash);
	let s = name.slice(dot < 0 || dot + 1 === name.length ? slash : dot + 1);
	if (textWidth(s) <= room)
		return s;
	const method = /^\([^()]*\)\.(.+)$/.exec(s);
	if (method && textWidth((s = method[1])) <= room)
		return s;
	let keep = Math.min(s.length - 1, Math.floor(room / 5));
	while (keep > 1 && textWidth(s.slice(0, keep) + '…') > room)
		keep--;
	return keep > 1 ? s.slice(0, keep) + '…' : '';
}

// Packages of one owner differ a little: paler in light, deeper in dark, so contrast only grows.
const shades = [[], []];
function shadeOf(f, dark) {
	if (!shades[dark][f]) {
		let h = 0;
		for (const c of packageOf(funcName(f)))
			h = (Math.imul(h, 31) + c.charCodeAt(0)) | 0;
		const one = owner[f] === 'main' || owner[f] === 'Go runtime';
		const part = one ? 0 : ((h >>> 3) % 4) * 0.09, fill = ownerColor.get(owner[f])[dark];
		shades[dark][f] = '#' + [1, 3, 5].map((at) => {
			const v = parseInt(fill.slice(at, at + 2), 16);
			return Math.round(dark ? v * (1 - part) : v + (255 - v) * part * 1.6).toString(16).padStart(2, '0');
		}).join('');
	}
	return shades[dark][f];
}

function fillOf(node, dark) {
	const item = V.item[node], f = funcOf(item);
	return item < 0 ? ROOT[dark] : f < 0 ? LABEL[dark] : shadeOf(f, dark);
}

const hatch = [];
function hatchOf(dark, found) {
	const at = found ? dark + 2 : dark;
	if (!hatch[at]) {
		const c = document.createElement('canvas'), g = c.getContext('2d');
		c.width = c.height = 6;
		g.strokeStyle = found ? MATCH[dark] : dark ? '#56606d' : '#b4bcc6';
		g.beginPath();
		for (const k of [-3, 0, 3, 6]) {
			g.moveTo(k, 6);
			g.lineTo(k + 6, 0);
		}
		g.stroke();
		hatch[at] = ctx.createPattern(c, 'repeat');
	}
	return hatch[at];
}

// The contents of a rectangle of frames that are too narrow, by package, the largest first: [name, value].
function inRest(r) {
	if (!r.groups) {
		const sum = V.total(S.type), by = new Map();
		for (const k of V.children(r.node, S.type).slice(-r.rest)) {
			const f = funcOf(V.item[k]), name = f < 0 ? nameOf(V.item[k]) : packageOf(funcName(f));
			by.set(name, (by.get(name) || 0) + sum[k]);
		}
		r.groups = [...by].sort((a, b) => b[1] - a[1]);
	}
	return r.groups;
}

// How much of the search's matches is in there.
function matchesIn(r) {
	if (r.searched !== hit) {
		r.searched = hit;
		r.matches = hit ? V.children(r.node, S.type).slice(-r.rest).reduce((a, k) => a + hitIn[k], 0) : 0;
	}
	return r.matches;
}

// Hatched frames say what they hold, on a background of their own.
function drawRest(r, y, h, dark) {
	const sum = V.total(S.type)[0], most = inRest(r).slice(0, 3).map(([name, v]) => name + ' ' + percent(v, sum));
	const head = counted(r.rest, 'frame'), long = head + ': ' + most.join(', ') + (r.groups.length > 3 ? ', …' : '');
	const s = textWidth(long) <= r.w - 12 ? long : fit(head, r.w - 12);
	if (!s)
		return;
	ctx.fillStyle = ROOT[dark];
	ctx.fillRect(r.x + 2, y + 1, textWidth(s) + 6, h - 2);
	ctx.fillStyle = dark ? '#f4f6f9' : '#14181d';
	ctx.fillText(s, r.x + 5, y + h / 2 + 0.5);
}

function drawRect(r, y, depth, zoomDepth, dark) {
	const w = Math.max(r.w - (r.w > 3 ? 1 : 0.25), 0.6), h = ROW - 1;
	const found = hit && (r.rest ? matchesIn(r) > 0 : hit[r.node]), dim = (hit && !found) || depth < zoomDepth;
	ctx.globalAlpha = dim ? (hit ? 0.38 : 0.62) : 1;
	ctx.fillStyle = r.rest ? hatchOf(dark, found) : found ? MATCH[dark] : fillOf(r.node, dark);
	ctx.fillRect(r.x, y, w, h);
	if (!r.rest && funcOf(V.item[r.node]) < 0 && V.item[r.node] >= 0) { // a label, not a frame
		ctx.strokeStyle = dark ? '#6d7784' : '#98a2ae';
		ctx.strokeRect(r.x + 0.5, y + 0.5, Math.max(w - 1, 0.5), h - 1);
	}
	if (r.w >= 22 && !r.rest) {
		ctx.globalAlpha = dim && hit ? 0.75 : 1;
		ctx.fillStyle = found ? MATCH_TEXT[dark] : dark ? '#f4f6f9' : '#14181d';
		const s = fit(r.node ? nameOf(V.item[r.node]) : rootName(), r.w - 9);
		if (s)
			ctx.fillText(s, r.x + 4, y + h / 2 + 0.5);
	}
	if (r.w >= 60 && r.rest)
		drawRest(r, y, h, dark);
	ctx.globalAlpha = 1;
	if (r === hover || r === focus) {
		ctx.strokeStyle = r === focus ? (dark ? '#8cc4ff' : '#0b62b8') : (dark ? '#ffffff' : '#14181d');
		ctx.lineWidth = r === focus ? 2 : 1.25;
		ctx.strokeRect(r.x + 0.75, y + 0.75, Math.max(w - 1.5, 0.5), h - 1.5);
		ctx.lineWidth = 1;
	}
}

const rootName = () => 'all: ' + amount(V.total(S.type)[0], unitOf(S.type));
const yOf = (depth) => (S.flip ? rows.length - 1 - depth : depth) * ROW;

function draw() {
	const main = $('scroll');
	const tall = Math.max(rows.length * ROW, 1);
	const view = Math.max(Math.min(main.clientHeight, tall), 1);
	$('space').style.height = tall + 'px';
	paint(canvas, Math.max(0, Math.min(main.scrollTop, tall - view)), view, window.devicePixelRatio || 1);
}

// Draws the rows from @top on, @view pixels of them.
function paint(to, top, view, dpr) {
	const dark = isDark() ? 1 : 0;
	if (to.width !== Math.round(width * dpr) || to.height !== Math.round(view * dpr)) {
		to.width = Math.round(width * dpr);
		to.height = Math.round(view * dpr);
		to.style.width = width + 'px';
		to.style.height = view + 'px';
	}
	ctx = to.getContext('2d');
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.clearRect(0, 0, width, view);
	ctx.translate(0, -top);
	ctx.font = FONT;
	ctx.textBaseline = 'middle';
	const zoomDepth = ancestors(S.zoom).length - 1;
	for (let depth = 0; depth < rows.length; depth++) {
		const y = yOf(depth);
		if (y + ROW <= top || y >= top + view)
			continue;
		for (const r of rows[depth])
			drawRect(r, y, depth, zoomDepth, dark);
	}
}

// For paper: draws all rows, in strips, so that pages can break between them.
function paintPaper() {
	const tall = Math.min(rows.length * ROW, 20000), strip = 5 * ROW;
	for (let top = 0; top < tall; top += strip) {
		const c = element('canvas');
		$('paper').append(c);
		paint(c, top, Math.min(strip, tall - top), 2);
	}
}

let queued = false;
function redraw() {
	if (queued || printing)
		return;
	queued = true;
	requestAnimationFrame(() => {
		queued = false;
		draw();
	});
}

function relayout() {
	width = printing ? 1040 : Math.max($('scroll').clientWidth, 50);
	hover = focus = null;
	layout();
	$('empty').hidden = rows.length > 0;
	if (!rows.length && D.types.some((t, i) => V.total(i)[0]))
		$('empty').textContent = 'Nothing to draw for ' + show(D.types[S.type][0]) + '. The buttons on top show the other sample types.';
	$('space').hidden = printing || !rows.length;
	$('paper').replaceChildren();
	hideTip();
	if (printing)
		paintPaper();
	else
		draw();
}

function rectAt(x, y) {
	const box = canvas.getBoundingClientRect(), main = $('scroll');
	const tall = rows.length * ROW, top = Math.max(0, Math.min(main.scrollTop, tall - box.height));
	let depth = Math.floor((y - box.top + top) / ROW);
	if (S.flip)
		depth = rows.length - 1 - depth;
	const row = rows[depth], at = x - box.left;
	if (!row || at < 0)
		return null;
	let lo = 0, hi = row.length - 1;
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (row[mid].x <= at)
			lo = mid;
		else
			hi = mid - 1;
	}
	return row[lo].x <= at && at < row[lo].x + row[lo].w ? row[lo] : null;
}

// ---- the figures of one frame --------------------------------------------------------------------------

function element(tag, textContent, className) {
	const e = document.createElement(tag);
	if (textContent !== undefined)
		e.textContent = textContent;
	if (className)
		e.className = className;
	return e;
}

function whereIs(node) {
	const item = V.item[node], line = V.line[node];
	if (item < 0)
		return '';
	if (item >= LABEL0)
		return 'label ' + text[S.key];
	if (line < 0)
		return funcFile(funcOf(item)) && funcFile(funcOf(item)) + ', several lines';
	return place(funcOf(item), D.frames[2 * (line - 1) + 1]);
}

function figures(r) {
	const t = S.type, sum = V.total(t), unit = unitOf(t);
	let v = sum[r.node], parent = r.node ? V.parent[r.node] : -1;
	if (r.rest) {
		v = V.children(r.node, t).slice(-r.rest).reduce((a, k) => a + sum[k], 0);
		parent = r.node;
	}
	return {
		name: r.rest ? counted(r.rest, 'frame') + ' too narrow to draw' : r.node ? nameOf(V.item[r.node]) : 'all',
		where: r.rest ? (r.node === S.zoom ? 'search for what you miss, or widen the window' : 'zoom into ' + nameOf(V.item[r.node]) + ' to see them') : whereIs(r.node),
		total: v, totalText: amount(v, unit), ofAll: percent(v, sum[0]),
		ofParent: parent >= 0 ? percent(v, sum[parent]) : '',
		self: r.rest ? null : V.own(t)[r.node],
		matches: r.rest ? matchesIn(r) : 0,
	};
}

function tipRow(table, head, cells, className) {
	const tr = element('tr', undefined, className);
	tr.append(element('th', head));
	for (const c of cells)
		tr.append(element('td', c));
	table.append(tr);
}

function fillTip(r) {
	const tip = $('tip'), f = figures(r), t = S.type, all = V.total(t)[0], table = element('table');
	tip.replaceChildren(element('div', f.name, 'name'));
	if (f.where)
		tip.append(element('div', f.where, 'file mono'));
	tipRow(table, 'total', [f.totalText, f.ofAll + ' of all', f.ofParent && f.ofParent + (S.callers ? ' of callee' : ' of parent')]);
	if (f.self !== null)
		tipRow(table, 'self', [amount(f.self, unitOf(t)), percent(f.self, all) + ' of all', '']);
	if (f.matches)
		tipRow(table, 'matches', [amount(f.matches, unitOf(t)), percent(f.matches, all) + ' of all', '']);
	for (let k = 0; k < NT && !r.rest; k++)
		if (k !== t)
			tipRow(table, show(D.types[k][0]), [amount(V.total(k)[r.node], unitOf(k)), percent(V.total(k)[r.node], V.total(k)[0]) + ' of all', ''], 'others');
	for (const [name, v] of r.rest ? inRest(r).slice(0, 8) : [])
		tipRow(table, name, [amount(v, unitOf(t)), percent(v, all) + ' of all', ''], 'others');
	if (r.rest && inRest(r).length > 8)
		tipRow(table, 'and ' + grouped(inRest(r).length - 8) + ' more', ['', '', ''], 'others');
	tip.append(table);
}

function showTip(r, x, y) {
	const tip = $('tip');
	fillTip(r);
	tip.hidden = false;
	tip.style.left = 0; // where it stood says how wide it may be
	const w = tip.offsetWidth, h = tip.offsetHeight;
	tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - w - 10)) + 'px';
	tip.style.top = (y + 20 + h > innerHeight - 6 ? Math.max(6, y - h - 12) : y + 20) + 'px';
}

function hideTip() {
	$('tip').hidden = true;
}

function tellStatus(r) {
	const s = $('status');
	if (!r) {
		s.replaceChildren();
		return;
	}
	const f = figures(r);
	s.replaceChildren(element('b', f.name), document.createTextNode('  ' + f.totalText + ', ' + f.ofAll + ' of all' +
		(f.self ? ', self ' + amount(f.self, unitOf(S.type)) : '') + (f.where ? '  ·  ' + f.where : '')));
}

const counted = (n, what) => grouped(n) + ' ' + what + (n === 1 ? '' : 's');
const idle = () => counted(V.n - 1, 'frame') + ', ' + counted(self.n, 'stack') + '. Click to zoom, / to search.';
