// The user's actions, and the parts around the graph. Names get into the page as textContent only.

// ---- the state of the page is in its address, so that the browser's back button works ----------------------

function address() {
	const a = new URLSearchParams();
	if (S.type !== D.main)
		a.set('type', D.types[S.type][0]);
	if (S.key >= 0)
		a.set('label', D.strings[S.key]);
	if (S.key >= 0 && !S.leaf)
		a.set('at', 'root');
	for (const k of ['lines', 'callers', 'flip', 'regex'])
		if (S[k])
			a.set(k, '1');
	if (S.query)
		a.set('q', S.query);
	if (S.zoom)
		a.set('zoom', S.zoom);
	if (S.key < 0 && DEFAULT_KEY >= 0)
		a.set('label', '');
	return a.toString();
}

let ours = null;
function remember(step) { // step: a new entry of the history
	const a = address();
	ours = a;
	try {
		history[step ? 'pushState' : 'replaceState'](null, '', '#' + a);
	} catch (e) {
		location.hash = a; // what a browser thinks of files
	}
}

function recall() {
	const a = new URLSearchParams(location.hash.slice(1));
	const type = D.types.findIndex((t) => t[0] === a.get('type'));
	const was = [S.lines, S.callers, S.key, S.leaf].join();
	S.type = type >= 0 ? type : D.main;
	S.key = a.has('label') ? KEYS.find((k) => D.strings[k] === a.get('label')) ?? -1 : DEFAULT_KEY;
	S.leaf = a.get('at') !== 'root';
	for (const k of ['lines', 'callers', 'flip', 'regex'])
		S[k] = a.get(k) === '1';
	S.query = a.get('q') || '';
	if (!V || was !== [S.lines, S.callers, S.key, S.leaf].join())
		build();
	const zoom = Number(a.get('zoom'));
	S.zoom = Number.isInteger(zoom) && zoom > 0 && zoom < V.n ? zoom : 0;
	ours = address();
	if ($('query').value !== S.query)
		$('query').value = S.query;
	matchAll();
	update();
}

// ---- acting ----------------------------------------------------------------------------------------------------

function update() {
	relayout();
	crumbs();
	$('types').querySelectorAll('button').forEach((b, i) => {
		b.setAttribute('aria-checked', String(i === S.type));
		b.tabIndex = i === S.type ? 0 : -1;
	});
	for (const k of ['lines', 'callers', 'flip', 'regex'])
		$(k).setAttribute('aria-pressed', String(S[k]));
	$('group').value = S.key < 0 ? '' : S.key + (S.leaf ? ' leaf' : ' root');
	legend();
	tellStatus(null);
	if (S.flip)
		$('scroll').scrollTop = 1e9;
}

function zoomTo(n) {
	if (n === S.zoom)
		return;
	S.zoom = n;
	remember(true);
	update();
	if (rows.length) {
		const depth = ancestors(S.zoom).length - 1, main = $('scroll');
		const y = yOf(depth);
		if (y < main.scrollTop || y > main.scrollTop + main.clientHeight - 3 * ROW)
			main.scrollTop = Math.max(0, S.flip ? y - main.clientHeight + 4 * ROW : y - 2 * ROW);
	}
}

function setType(t) {
	if (t < 0 || t >= NT || t === S.type)
		return;
	S.type = t;
	matchAll();
	remember(true);
	update();
}

function toggle(k) {
	S[k] = !S[k];
	if (k === 'lines' || k === 'callers') {
		S.zoom = 0;
		build();
	}
	if (k === 'regex')
		matchAll();
	remember(true);
	update();
}

function setQuery(q) {
	S.query = q;
	if ($('query').value !== q)
		$('query').value = q;
	matchAll();
	remember(false);
	redraw();
}

function toggleTheme() {
	setTheme(isDark() ? 'light' : 'dark');
	try {
		localStorage.setItem('goprof-bpf theme', document.documentElement.dataset.theme);
	} catch (e) { /* then it is not kept */ }
}

function setTheme(theme) {
	document.documentElement.dataset.theme = theme;
	legend();
	redraw();
}

function crumbs() {
	const nav = $('crumbs');
	nav.replaceChildren();
	if (!NT || !rows.length)
		return;
	if (!S.zoom) {
		nav.append(element('span', idle()));
		return;
	}
	const path = ancestors(S.zoom), shown = path.length > 5 ? [path[0], -1, ...path.slice(-3)] : path;
	for (const n of shown) {
		if (n !== path[0])
			nav.append(element('i', '›'));
		if (n === -1) {
			nav.append(element('i', ' … '));
		} else if (n === S.zoom) {
			nav.append(element('span', nameOf(V.item[n]), 'here'));
		} else {
			const b = element('button', n ? fitName(nameOf(V.item[n])) : 'all');
			b.type = 'button';
			b.addEventListener('click', () => zoomTo(n));
			nav.append(b);
		}
	}
}

function fitName(name) {
	const end = name.search(/[([]/), slash = (end < 0 ? name : name.slice(0, end)).lastIndexOf('/');
	return name.slice(slash + 1);
}

// ---- around the graph -------------------------------------------------------------------------------------------

function legend() {
	const box = $('legend');
	box.replaceChildren();
	if (!NT || !V)
		return;
	const dark = isDark() ? 1 : 0, all = V.total(S.type)[0], sums = sumByOwner(S.type);
	for (const o of new Set(owner))
		if (!sums.some((x) => x[0] === o))
			sums.push([o, 0]);
	const own = sums.filter((x) => ownerColor.get(x[0]) !== OTHERS), rest = sums.filter((x) => ownerColor.get(x[0]) === OTHERS);
	const add = (name, v, color, title) => {
		const b = element('div'), i = element('i');
		b.title = title;
		i.style.backgroundColor = color;
		b.append(i, element('em', name), element('span', percent(v, all)));
		box.append(b);
	};
	for (const [name, v] of own.slice(0, 10))
		add(name, v, ownerColor.get(name)[dark], name + ' by itself: ' + amount(v, unitOf(S.type)));
	const more = own.slice(10).concat(rest);
	if (more.length)
		add(grouped(more.length) + ' more', more.reduce((a, x) => a + x[1], 0), OTHERS[dark], more.slice(0, 30).map((x) => x[0]).join('\n'));
}

const KINDS = { cpu: 'CPU profile', heap: 'Heap profile', block: 'Block profile', mutex: 'Mutex profile', wait: 'Wait profile', goroutine: 'Goroutine profile' };

function list(ul, lines) {
	for (const l of lines)
		ul.append(element('li', show(l)));
}

// "target: NAME pid N, go1.22, stripped": the name may have blanks in it.
function header() {
	const target = D.comments.map((c) => /^target: (.*) pid (\d+), (.*)$/s.exec(c)).find(Boolean);
	const window_ = D.comments.map((c) => /^window: (.*)$/.exec(c)).find(Boolean);
	const kind = KINDS[D.kind] || (D.kind ? show(D.kind) + ' profile' : 'Profile'), facts = [];
	$('kind').textContent = kind;
	$('comm').textContent = target ? show(target[1]) : '';
	document.title = kind + (target ? ': ' + show(target[1]) + ' ' + target[2] : '');
	if (target)
		facts.push('pid ' + target[2], show(target[3]));
	if (D.duration_ns)
		facts.push(amount(D.duration_ns, 'nanoseconds') + ' window');
	else if (window_)
		facts.push(show(window_[1]) + ' window');
	if (D.time_ms)
		facts.push(new Date(D.time_ms).toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC'));
	facts.push('goprof-bpf ' + D.version);
	$('facts').append(...facts.map((f) => element('span', f)));
	const lost = D.losses.concat(D.types.map((t, i) => D.negative[i] ? D.negative[i] + ' samples have ' + t[0] + ' below zero, which are not drawn' : '').filter(Boolean));
	if (lost.length) {
		$('losses').hidden = false;
		$('losses').firstElementChild.textContent = lost.length === 1 ? show(lost[0]) : lost.length + ' losses: ' + show(lost[0]).replace(/^loss: /, '') + ' …';
		if (lost.length > 1)
			list($('losses').lastElementChild, lost);
	}
	list($('notes').lastElementChild, D.comments.concat(D.losses));
	$('notes').hidden = !D.comments.length && !D.losses.length;
}

function typeButtons() {
	D.types.forEach((t, i) => {
		const b = element('button');
		b.type = 'button';
		b.setAttribute('role', 'radio');
		b.append(element('span', show(t[0])), element('strong', amount(D.total[i], unitOf(i))));
		b.title = grouped(D.total[i]) + ' ' + show(t[1]) + ' (' + (i + 1) + ')';
		b.addEventListener('click', () => setType(i));
		b.addEventListener('keydown', (e) => {
			const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
			if (!step)
				return;
			e.preventDefault();
			setType((i + step + NT) % NT);
			$('types').children[S.type].focus();
		});
		$('types').append(b);
	});
}

const KEYS = [...new Set(D.labels.flatMap((row) => row.filter((_, i) => i % 2 === 0)))].sort((a, b) => text[a] < text[b] ? -1 : 1);
// Such profiles are taken to see the reason of a wait, or the type that was allocated.
const DEFAULT_KEY = KEYS.find((k) => D.strings[k] === 'reason' || D.strings[k] === 'type') ?? -1;

function groupSelect() {
	const add = (value, label) => {
		const o = element('option', label);
		o.value = value;
		$('group').append(o);
	};
	$('grouping').hidden = !KEYS.length;
	add('', 'not shown');
	for (const k of KEYS) {
		add(k + ' leaf', text[k] + ' at the leaf');
		add(k + ' root', text[k] + ' at the root');
	}
	$('group').addEventListener('change', () => {
		const [key, where] = $('group').value.split(' ');
		S.key = key === '' ? -1 : Number(key);
		S.leaf = where !== 'root';
		S.zoom = 0;
		build();
		remember(true);
		update();
	});
}

// What is drawn must be what was measured.
function check() {
	for (let t = 0; t < NT; t++) {
		const sum = V.total(t)[0];
		if (Math.abs(sum - D.total[t]) > Math.abs(D.total[t]) * 1e-9) {
			$('broken').textContent = 'The samples of this page add up to ' + sum + ' ' + show(D.types[t][0]) + ', not to ' + D.total[t] + ': the file is damaged.';
			$('broken').hidden = false;
		}
	}
}

// ---- events --------------------------------------------------------------------------------------------------------

function depthOf(r) {
	return rows.findIndex((row) => row.includes(r));
}

function setFocus(r) {
	if (!r)
		return;
	focus = r;
	const y = yOf(depthOf(r)), main = $('scroll');
	if (y < main.scrollTop)
		main.scrollTop = y;
	else if (y + ROW > main.scrollTop + main.clientHeight)
		main.scrollTop = y + ROW - main.clientHeight;
	draw();
	const box = canvas.getBoundingClientRect(), top = Math.max(0, Math.min(main.scrollTop, rows.length * ROW - box.height));
	showTip(r, box.left + Math.max(r.x, 0) + Math.min(r.w / 2, 60), box.top + y - top + ROW / 2);
	tellStatus(r);
}

function move(key) {
	if (!rows.length)
		return;
	if (!focus) {
		setFocus(rows[ancestors(S.zoom).length - 1][0]);
		return;
	}
	const depth = depthOf(focus), row = rows[depth], i = row.indexOf(focus);
	if (key === 'ArrowLeft' || key === 'ArrowRight') {
		setFocus(row[i + (key === 'ArrowLeft' ? -1 : 1)]);
		return;
	}
	const to = rows[depth + ((key === 'ArrowDown') !== S.flip ? 1 : -1)];
	const mid = focus.x + 0.5;
	setFocus(to && (to.find((r) => r.x <= mid && mid < r.x + r.w) || to.find((r) => r.x >= focus.x && r.x < focus.x + focus.w)));
}

function escape() {
	if (S.query)
		setQuery('');
	else if (S.zoom)
		zoomTo(V.parent[S.zoom]);
	hideTip();
}

function key(e) {
	if (e.ctrlKey || e.metaKey || e.altKey)
		return;
	if (e.target === $('query') || e.target === $('group')) {
		if (e.key === 'Escape') {
			setQuery('');
			canvas.focus();
		} else if (e.key === 'Enter' && e.target === $('query'))
			canvas.focus();
		return;
	}
	const onButton = e.target.closest && e.target.closest('button, summary');
	const letters = { l: 'lines', c: 'callers', f: 'flip' };
	if (e.key === '/') {
		$('query').focus();
		$('query').select();
	} else if (e.key === 'Escape')
		escape();
	else if (e.key === '0' || e.key === 'Home')
		zoomTo(0);
	else if (/^[1-9]$/.test(e.key))
		setType(Number(e.key) - 1);
	else if (letters[e.key.toLowerCase()])
		toggle(letters[e.key.toLowerCase()]);
	else if (e.key.toLowerCase() === 'd')
		toggleTheme();
	else if (e.key.startsWith('Arrow') && !(onButton && onButton.parentNode === $('types')))
		move(e.key);
	else if ((e.key === 'Enter' || e.key === ' ') && !onButton && focus) {
		const n = focus.node;
		zoomTo(n);
		setFocus(rows[ancestors(n).length - 1][0]);
	} else
		return;
	e.preventDefault();
}

function listen() {
	canvas.addEventListener('mousemove', (e) => {
		const r = rectAt(e.clientX, e.clientY);
		if (r !== hover) {
			hover = r;
			redraw();
			tellStatus(r);
		}
		canvas.style.cursor = r ? 'pointer' : 'default';
		if (r)
			showTip(r, e.clientX, e.clientY);
		else
			hideTip();
	});
	canvas.addEventListener('mouseleave', () => {
		hover = null;
		hideTip();
		tellStatus(null);
		redraw();
	});
	canvas.addEventListener('click', (e) => {
		const r = rectAt(e.clientX, e.clientY);
		if (r)
			zoomTo(r.node);
	});
	let below = 0; // what is seen with the root at the bottom stays when the window changes
	$('scroll').addEventListener('scroll', () => {
		below = $('scroll').scrollHeight - $('scroll').scrollTop - $('scroll').clientHeight;
		hideTip();
		redraw();
	});
	let typing = 0;
	$('query').addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => setQuery($('query').value), V.n > 200000 ? 250 : 60);
	});
	for (const k of ['lines', 'callers', 'flip', 'regex'])
		$(k).addEventListener('click', () => toggle(k));
	$('theme').addEventListener('click', toggleTheme);
	document.addEventListener('keydown', key);
	window.addEventListener('popstate', recall);
	window.addEventListener('hashchange', () => {
		if (location.hash.slice(1) !== ours)
			recall();
	});
	new ResizeObserver(() => {
		if (!printing && $('scroll').clientWidth !== width)
			relayout();
		else
			redraw();
		if (S.flip)
			$('scroll').scrollTop = $('scroll').scrollHeight - $('scroll').clientHeight - below;
	}).observe($('scroll'));
	listenPrint();
}

function listenPrint() {
	let theme, open;
	window.addEventListener('beforeprint', () => {
		theme = document.documentElement.dataset.theme;
		open = $('notes').open;
		printing = true;
		document.documentElement.dataset.theme = 'light';
		$('notes').open = true;
		$('losses').open = true;
		legend();
		relayout();
	});
	window.addEventListener('afterprint', () => {
		printing = false;
		document.documentElement.dataset.theme = theme;
		$('notes').open = open;
		legend();
		relayout();
	});
}

function startTheme() {
	const system = matchMedia('(prefers-color-scheme: dark)');
	let kept = null;
	try {
		kept = localStorage.getItem('goprof-bpf theme');
	} catch (e) { /* not allowed for files, here */ }
	const follow = () => {
		if (!kept)
			document.documentElement.dataset.theme = system.matches ? 'dark' : 'light';
		legend();
		redraw();
	};
	document.documentElement.dataset.theme = kept === 'dark' || kept === 'light' ? kept : system.matches ? 'dark' : 'light';
	system.addEventListener('change', follow);
}

ctx.font = FONT;
startTheme();
assignColors();
header();
typeButtons();
groupSelect();
if (NT)
	recall();
else
	$('empty').hidden = false;
$('broken').hidden = true;
if (V) {
	check();
	listen();
}

// For tools that drive the page from outside: where a frame is drawn, and what is drawn.
window.flame = {
	state: () => ({ ...S, key: S.key < 0 ? '' : D.strings[S.key], frames: V ? V.n - 1 : 0, rows: rows.length, dark: isDark() }),
	where: (name) => { // the widest of that name
		const box = canvas.getBoundingClientRect(), main = $('scroll');
		const top = Math.max(0, Math.min(main.scrollTop, rows.length * ROW - box.height));
		let best = null;
		rows.forEach((row, depth) => row.forEach((r) => {
			if (!r.rest && r.node && nameOf(V.item[r.node]) === name && !(best && best.w >= r.w))
				best = { x: box.left + r.x + r.w / 2, y: box.top + yOf(depth) - top + ROW / 2, w: r.w, depth };
		}));
		return best;
	},
	drawn: () => rows.flat().map((r) => ({ ...figures(r), rest: r.rest, holds: r.rest ? inRest(r) : [], w: r.w })),
	totals: () => D.types.map((t, i) => ({ type: t[0], unit: t[1], total: V.total(i)[0] })),
	palette: () => ({ fills: [...Object.values(FIXED), ...PALETTE, OTHERS, LABEL, ROOT], text: ['#14181d', '#f4f6f9'], match: MATCH, matchText: MATCH_TEXT }),
};
