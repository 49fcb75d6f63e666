"""The variables, expressions and templates that snippets.py renders."""

VARS = {
    "n": 7, "neg": -3, "big": 123456789012345678901234567890, "f": 2.5, "t": True, "no": None, "s": "Hello World", "e": "",
    "u": "Straße ǅ 北京 İ", "l": [3, 1, 2], "el": [], "d": {"b": 1, "a": [1, {"x": None}], "items": "own"},
    "names": ["bob", "Alice", "carol"], "html": "<b>&'\"</b>",
    "rows": [{"k": "x", "v": 3, "n": {"m": 1}}, {"k": "Y", "v": 1}, {"k": "x", "v": 2, "n": {"m": 0}}],
    "text": "line one\n  line two\n\nline four", "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3}]}, {"v": 4}],
}

# Values for the tables of operators, tests and filters.
VALUES = ["0", "7", "-3", "true", "none", "2.5", "-0.5", "1e20", "big", "''", "'ab'", "'%s'", "[]", "[1, 2]", "(1, 2)", "{'a': 1}",
          "missing", "range(3)", "'12'"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]
TESTS = ["odd", "even", "defined", "undefined", "filter", "test", "none", "boolean", "false", "true", "integer", "float", "lower",
         "upper", "string", "mapping", "number", "sequence", "iterable", "callable", "divisibleby 3", "in [7, 'ab']",
         "sameas none", "sameas true", "eq 7", "ne 7", "gt 1", "ge 1", "lt 1", "le 1", "== 7", "greaterthan(2)"]
FILTERS = ["abs", "attr('upper')", "capitalize", "count", "d('D')", "default('D', true)", "dictsort",
           "first", "float", "float(1)", "format(1)", "indent", "int",
           "int(5, 16)", "items|list", "join('-')", "last", "length", "list", "lower", "map('upper')|list", "map(attribute='a')|list",
           "max", "min", "reject|list", "rejectattr('a')|list", "replace('a', 'b')", "reverse|list", "reverse|string", "round",
           "round(1, 'floor')", "round(-1)", "safe", "select|list", "selectattr('a')|list", "sort", "sort(reverse=true)",
           "string", "sum", "title", "tojson", "tojson(indent=2)", "trim", "truncate(3, true, '', 0)", "unique|list",
           "upper"]
METHODS = """capitalize() casefold() center(20) center(20,'*') center(3) count('l') count('l',4) count('l',-3,20) count('') endswith('d')
endswith(('x','d')) endswith('d',0,3) find('o') find('o',5) find('zz') find('',20) rfind('o') index('W') index('zz') rindex('o')
isalnum() isalpha() isascii() isdecimal() isdigit() islower() isnumeric() isspace() isupper()
join(['a','b']) join([1]) join('xyz') ljust(14)~'|' ljust(14,'ab') lower() lstrip() lstrip('He') partition('o') partition('') partition('zz')
removeprefix('He') removesuffix('ld') replace('l','L') replace('l','L',1) replace('','-') replace('l','L',count=1) rjust(14,'.') rpartition('o')
rsplit() rsplit('o') rsplit('o',1) rsplit(maxsplit=1) rstrip('d') split() split('o') split('o',1) split(None,1) split('') split(sep='l')
splitlines() splitlines(true) startswith('He') startswith(('x','He')) startswith(1) startswith('l',2) strip('Hd') strip(none) title()
upper() zfill(14) zfill(2) format(1) nope nope() __class__
__len__() _x""".split()

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
2 ** 10, 2 ** -1, 2 ** 3 ** 2, -2 ** 2, 2 ** 0.5, 2 ** 100, 10 ** 25, (-8) ** (1/3) is number
9007199254740993 + 0.0, 9223372036854775807 + 1, -9223372036854775808 - 1, 9223372036854775807 * 2, 4611686018427387904 * 2
big * big, big // 7, big % 7, -big // 7, big / 3, big == 123456789012345678901234567890, big > 1e20, big|float
1 / 3, 1e16, 1e15, 123456789.123, 1e-5, 0.0001, 1e100, 1.0, 100000000000000000.0, 5e-324, -0.0, 0.1 + 0.2, 1e22, 1.5e300 * 1e10
0x1F, 0b101, 0o17, 1_000_000, 1_0.5_0, 1e3, 1E-2
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2 == 2, 1 == 1.0 == true, 'a' < 'b', [1, 2] < [1, 3], (1,) < (1, 2)
1 in [1, 2], 'a' in 'abc', 'x' not in 'abc', 'b' in d, 2 in range(3), 5 in (1, 2), none in [none], missing in [1]
not true, not 0, not '', not [0], not missing
true and 1, 0 and x, 0 or 'x', '' or [] or none, missing or 'd', 1 and 2 and 3
'a' if true else 'b', 'a' if false, ('a' if false) is defined, 1 if 0 else 2 if 0 else 3
'a' ~ 1 ~ none ~ true ~ [1, 'x'] ~ {'k': 1.0} ~ missing
'abc'[0], 'abc'[-1], 'abc'[5], 'abc'[1:], 'abc'[::-1], 'abcdef'[1:-1:2], 'abc'[5:], 'abc'[-10:2], u[7:9], u[::-1]
l[0], l[-1], l[5], l[1:], l[::-1], l[:-1], l[::2], l[-2:], (1, 2, 3)[1:], range(10)[2:8:3], range(5)[-1]
d.b, d['b'], d.items() | list, d['items'], d.a[1].x, d.nope, d.a.1, d.a[1]['x'], d.get('z'), d.get('z', 5), d.get('b')
d.keys(), d.values(), d.items(), d.keys()|list, d.copy(), 'b' in d.keys(), d.items()|first, d|length, d|list
d, l, names, [1.0, none, true, 'it\'s', "q\"'", '\n\t\\'], (1,), (), {}, {1: 2, 'a': (1, 2), none: [], 2.5: {}}
{'a': 1, 'a': 2, 'b': 3}, {1: 'a', 1.0: 'b', true: 'c'}, dict(a=1, b=2), dict([('a', 1)], c=3), dict({'x': 1}, x=2)
'\x41\u00e9\U0001F600\101\n|\q|\é', "a" 'b' "c", 'tab\there', '\N{BULLET}'
'%s %r %d %5.2f %x %o %c %% %-5s|%05d|%+d|% d|%e|%g|%G|%i|%u|%X|%#x|%.3s|%5s' % ('a', 'b', 3, 2.345, 255, 8, 'z', 'ab', 42, 5, 5, 12345.678, 0.0001, 1e10, 3, 4, 255, 255, 'abcdef', 'q')
'%(a)s-%(b)03d' % {'a': 1, 'b': 2}, '%s' % [1], '%s' % (none,), '%s' % none, '%r' % ('x',), '%d' % 3.9, '%d' % true, '%s%%' % 5, '%*d' % (5, 3), '%.2f%%' % 12.345
'{} {} {0}'.format(1, 2)
'{0} {1} {0!r} {a} {a[0]} {b.c} {2:>5}|{2:<5}|{2:^5}|{2:05d}|{2:+}|{2:,}|{3:.2f}|{3:10.3e}|{3:g}|{3:%}|{4:*^9}|{2:x}|{2:#b}|{2:_}|{{}}'.format('p', 'q', 1234567, 3.14159, 'mid', a=[1], b={'c': 5})
'{:>{w}}|{:.{p}f}'.format('x', 2.71828, w=5, p=2), '{!s:>6}|{!r:<6}|{!a}'.format('a', 'b', 'é'), '{:d} {:c} {:e} {:n}'.format(5, 65, 1.5, 12)
'{0[0]} {1.upper}'.format([5], missing)
'{:.3} {:.3} {:g} {:g} {:g} {:.0f} {:.1f} {:,.2f} {:010.2f} {:+.1e} {:#.0f} {:.2%}'.format(3.14159, 'abcdef', 1e20, 1e-7, 100000.0, 2.5, 0.25, 1234567.891, -3.14159, 12345.6789, 3.0, 0.1234)
'{:08,d} {:_x} {:=+8d} {:<8d}| {:^+9.2f}| {!r:^7}|'.format(1234, 65535, 42, 7, 2.5, 'x')
"a,b,,c".split(','), " a  b ".split(), " a  b ".split(' '), "a b c".rsplit(' ', 1), "a\nb\r\nc\x0bd".splitlines()
s.upper(), s.lower(), s.title(), s.capitalize(), u.upper(), u.lower(), u.title(), u.casefold(), u.capitalize()
"they're bill's friends".title(), "they're bill's friends"|title, "a-b c(d)e[f]g<h"|title, "x1y".title(), 'ΑΣ'.lower(), 'ﬁ'.upper(), 'ŉ'.title()
'  x '.strip() ~ '|' ~ '  x '.lstrip() ~ '|' ~ '  x '.rstrip() ~ '|' ~ 'xxaxx'.strip('x')
s|upper|lower|title|replace('o', '0') ~ '|'
names|sort, names|sort(case_sensitive=true), names|sort(reverse=true), l|sort, rows|sort(attribute='v')|map(attribute='v')|list
rows|sort(attribute='k,v')|map(attribute='v')|list, rows|sort(attribute='n.m')|length
rows|map(attribute='k')|join(','), rows|map(attribute='n.m', default='-')|list, names|map('upper')|list, l|map('string')|join('+')
names|map('replace', 'o', '0')|list, names|map('truncate', 2, true, '', 0)|list, l|map('float')|list, names|map('first')|join
rows|selectattr('k', 'equalto', 'x')|map(attribute='v')|list, rows|rejectattr('k', 'eq', 'x')|list|length, rows|selectattr('n')|list|length
rows|selectattr('n', 'defined')|list|length, l|select('gt', 1)|list, l|reject('odd')|list, l|select|list, names|select('in', ['bob'])|list
rows|sum(attribute='v'), l|sum, l|sum(start=10), [[1], [2]]|sum(start=[]), []|sum, ['a']|sum
l|min, l|max, names|min, names|max, names|max(case_sensitive=true), []|max, rows|max(attribute='v')
l|first, l|last, el|first, el|last, 'abc'|first, 'abc'|last, d|first, missing|first
l|join, l|join('-'), names|join(', '), rows|join('|', attribute='k'), 'abc'|join('.'), missing|join, [1, none, 2.5]|join(',')
l|length, s|length, d|count, u|length, missing|length, 5|length
l|reverse|list, 'abc'|reverse, l|unique|list, ['a', 'A', 'b']|unique|list, ['a', 'A']|unique(case_sensitive=true)|list, rows|unique(attribute='k')|list|length
d|dictsort, {'B': 2, 'a': 1}|dictsort, {'B': 2, 'a': 1}|dictsort(true), {'b': 2, 'a': 3}|dictsort(by='value'), {'b': 2, 'a': 3}|dictsort(reverse=true)
'42'|int, '0x1f'|int(0, 16), '4.7'|int, 'x'|int, 'x'|int(-1), none|int, 3.99|int, true|int, ' 12 '|int, '1_000'|int, '-5'|int, '1e3'|int, '٣'|int
'4.5'|float, 'x'|float, 'x'|float(1.5), '1e3'|float, 5|float, 'inf'|float, 'nan'|float, none|float, ' 1_0.5 '|float
42.55|round, 42.55|round(1), 2.5|round, 3.5|round, 42.55|round(1, 'floor'), 42.55|round(1, 'ceil'), 5|round, 1234|round(-2), 0.5|round|int, 2.675|round(2), -0.5|round, 15|round(-1), 25|round(-1)
-5|abs, 2.5|abs, -2.5|abs, true|abs, big|abs
missing|default('x'), none|default('x'), ''|default('x', true), 0|d(5, true), missing|d, none|default('x', boolean=true), 'v'|default('x')
s|truncate(8), s|truncate(5, true), s|truncate(9, false, '..', 0), s|truncate(100), 'a b c d e f g h'|truncate(9, leeway=0), s|truncate(2)
text|indent, text|indent(2, true), text|indent(2, blank=true), text|indent('> '), 'a'|indent
d|tojson, l|tojson, {'a': 1.0, 'b': [none, true, 'é<&\u2028\'"\n\x07'], 'c': {}}|tojson, u|tojson(ensure_ascii=true), '😀'|tojson(ensure_ascii=true), d|tojson(indent=2), d|tojson(indent=0), d|tojson(separators=(',', ':')), {'b': 1, 'a': 2}|tojson(sort_keys=true), d|tojson(indent='--'), []|tojson(indent=2), [[], {}]|tojson(indent=1)
{1: 2, none: 3, true: 4, 2.5: 5}|tojson, missing|tojson
{(1, 2): 3}|tojson
[1, 2]|map('upper')|tojson
big|tojson, (1, 2)|tojson, 1e16|tojson, 5e-324|tojson, range(3)|list|tojson
range(5)|list, range(2, 5)|list, range(10, 0, -3)|list, range(0)|list, range(3), range(1, 9, 2), range(3) == range(0, 3, 1), range(5)|sum
range(1.5)
range(1, 5, 0)
range(100001)|length
range(100000)|length
s.__class__, s._x, d.pop, l.append, d.update is defined, l.sort is defined, ''.__class__.__mro__ is defined
l.append(1)
d.update({'x': 1})
d.pop('b')
missing.x
missing['x']
missing()
missing + 1
-missing
missing < 1
missing == missing, missing == none, missing != 1, missing ~ 'x', missing|string, missing|list, missing|upper
d.nope.nope
l.nope, l['nope'], l[none], l[1.5], s['upper'](), d[[1]] is defined, none.x is defined, (5).x is defined, 5 .x is defined
l.index(1), l.index(9)
l.count(1), (1, 1, 2).count(1), (1, 2).index(2), l.copy(), range(5).index(3), range(5).count(9)
none.upper()
'a' + 1
1 + 'a'
'a' + none
[1] + (2,)
'a' * 2.0
1 / 0
1 % 0
1.5 // 0
'abc' is string, 'abc' is iterable, 5 is number, true is number, true is integer, none is none, d is mapping, l is sequence, 'A' is upper, 'a' is lower, 4 is even, 4 is divisibleby(2), 4 is divisibleby 3, 'a' is in 'abc', 1 is sameas 1, x is not defined
'upper' is filter, 'nope' is filter, 'even' is test, [] is filter
l is sameas l, l is sameas l[:], d is eq d, l == [3, 1, 2], d == {'b': 1}, [1, [2]] == [1, [2]], (1, 2) == [1, 2], {'a': 1.0} == {'a': 1}
raise_exception is callable, s is callable, s.upper is callable, namespace(a=1).a, namespace({'q': 1}).q, namespace(a=1).b is defined, namespace(a=1)
strftime_now('%Y-%m-%d %H:%M:%S'), strftime_now('%d %b %Y'), strftime_now('%A, %B %-d, %I:%M %p %j %U %W %u %w %y %% %e %k %l %Z|%z|%f %G-%V %s %C %D %F %T %R %r %h %c %x %X %n%t %^a %#b %_d %05d %q %')
raise_exception('boom')
joiner()() ~ joiner()(), joiner is callable
(1, 2) + (3,), [1] * 3, 'ab' * 2, 0 * 'x', -1 * [1], [] + [], (1,) * 2
s|format(1)
'%s-%s'|format(1, 2), '%(a)s'|format(a=5), '%s'|format
'%d' % 'x'
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%z' % 1
'{}'.format()
'{a}'.format()
'{'.format()
'}'.format()
l|attr('append') is defined, d|attr('b') is defined, s|attr('upper'), namespace(z=4)|attr('z')
'a'|nofilter
'a' is notest
l[::0]
l['a':]
d[1:2]
[1, 2, 3][1.0]
l|sort(attribute='x')|length
[1, 'a']|sort
[none, 1]|max
[missing, missing]|sort
none|list
5|list
none|join
none|map('upper')|list, ''|select|list, 0|map('x')|list
5|map('upper')|list
l|map|list
l|map(nope)|list
l|map('nope')|list
s|items|list
missing|items|list, {'a': 1}|items|list, 'x'|string|list
'½'.isnumeric(), '²'.isdigit(), '²'.isdecimal(), '٣'.isdecimal(), '五'.isnumeric(), 'ª'.islower(), '\u00a0'.isspace(), 'é'.isalpha(), ''.isalpha(), ''.isascii()
'\xa0\u2028\u200b\ue000\U0001F600é\x7f\x85'|list, ['\xad', '\u0378', '\ufeff']
[1,2,3,], {'a':1,}, (1,), s.replace('l', 'L',)
s.split(*['o']), s.split(**{'sep': 'o'}), s.replace(*['l', 'L', 1]), '{a}'.format(**{'a': 1}), '{} {}'.format(*[1, 2])
s.split(*5)
s.split(**5)
'x'.center(5, 'ab')
s.center(15) ~ '|', s|replace(old='l', new='L'), s|replace('l', 'L', 1), s|replace('l', 'L', count=2), 5|replace(5, 6), none|replace('N', 'n')
true ~ false ~ none ~ 1.0 ~ (), [true, none], true + true, true * 3, -true, +true, 5 - true, true / 2, true // 1, true ** 2
1 is odd, 1 is not odd, not 1 is odd, 1 + 1 is even, 5 is defined and 6 is defined, (x is defined) ~ '', 1 is sameas true
l|length > 2, l|length is divisibleby 3, -l|length, not l|length, 2 * l|length, l|first + 1, -5|abs, 5 .x is not defined
"%.2f"|format(3.14159), "%05.1f|%-8s|%+d" % (3.14159, "ab", 5), '%s' % {'a': 1}, '%s' % d.keys()|list, '%5%' % ()
'a' < 1
[] < {}
none < none
{} | length
{'x': {'y': {'z': 'deep'}}}.x.y.z, [[1, 2], [3, 4]][1][0], 'abc'.upper().lower()[1].upper(), 'a b'.split()[0].title()
s.upper()()
5()
namespace(_a=1)
'Ünïcödé'|lower, 'İ'|lower|length, 'ß'|upper, 'ǆ'|title, 'ŉa'|capitalize
{'a': 1}.items()|list|tojson, {'a': 1}.values()|sum, {'b': 1, 'a': 2}.keys()|sort, {1: 2}.keys() == {1: 3}.keys(), {'a': 1}.items() == {'a': 1}.items()
""".strip("\n").split("\n")

TEMPLATES = r"""
a{% if n %}b{% endif %}c
{% if n == 1 %}a{% elif n == 7 %}b{% elif true %}x{% else %}c{% endif %}
{% if missing %}a{% else %}b{% endif %}{% if missing is defined %}c{% endif %}
{% for x in l %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}|{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }} {% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}
{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}{% for x in el %}{% else %}empty{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}
{% for k, v in d|dictsort %}{{ k }}{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2), (3, 4)] if a > 1 %}{{ a }}{{ b }}{{ loop.previtem }}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in none %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in missing %}a{% else %}b{% endfor %}
{% for x in 'abc' %}{{ x }}.{% endfor %}{% for x in range(3) %}{{ x }}{% endfor %}{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}no{% endfor %}
{% for x in [1] %}{% break %}{% else %}else after break{% endfor %}{% for x in [1] %}{% continue %}{% else %}else after continue{% endfor %}
{% for x in l %}{% for y in [1, 2] %}{% if y == 2 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}
{% for x in l %}{% set q %}{% break %}{% endset %}{% endfor %}done
{% break %}
{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in tree recursive %}{{ loop.depth }}{{ x.v }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %}
{% for x in l %}{{ loop(l) }}{% endfor %}
{% for x in l recursive %}{{ loop.index }}{% else %}none{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(x=0, found=false) %}{% for i in l %}{% set ns.x = ns.x + i %}{% set ns.found = true %}{% endfor %}{{ ns.x }}{{ ns.found }}{{ ns }}
{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a + ns.b }}{% set ns.c %}body{% endset %}{{ ns.c }}
{% set d.x = 1 %}
{% set missing.x = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c }}{{ d2 }}{% set z = 1, %}{{ z }}
{% set a, b = 1 %}
{% set true = 1 %}
{% set x %}  block {{ n }} {% endset %}[{{ x }}]{% set y | upper | trim %}  block {{ n }} {% endset %}[{{ y }}]
{% set x %}<b>{% endset %}{{ x }}{{ x ~ '<' }}{{ x is string }}
{% if false %}{% set s = 'changed' %}{% endif %}{{ s }}{% if true %}{% set s = 'changed' %}{% endif %}{{ s }}
{% for i in [1, 2] %}{% if i == 2 %}{% set s = 'changed' %}{% endif %}{{ s }} {% endfor %}{{ s }}
{{ x }}{% set x = 1 %}{{ x }}{% for i in [0] %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a is defined }}{% with %}{% set q = 1 %}{% endwith %}{{ q is defined }}
{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(a=5, b=6) }} {{ m(c=1) }} {{ m() }}
{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}{{ m.name }}{{ m.arguments }}{{ m.caller }}{{ m.catch_kwargs }}{{ m }}
{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b=0, c=3) m() %}{{ a }}{{ b }}{{ c }}{% endcall %}
{% macro m() %}{{ caller }}|{{ caller is defined }}{% endmacro %}{{ m() }}
{% macro m() %}x{% endmacro %}{% call m() %}{% endcall %}
{% macro outer() %}{% macro inner() %}i{{ n }}{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}
{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k }}*{{ fact(k - 1) }}{% endif %}{% endmacro %}{{ fact(5) }}
{% macro m() %}{{ late }}{% endmacro %}{{ m() }}{% set late = 'set' %}{{ m() }}
{% macro m(x) %}{% set n = x %}{{ n }}{% endmacro %}{{ m(1) }}{{ n }}
{% macro m() %}{{ undefinedname }}{{ s }}{% endmacro %}{{ m()|upper }}{{ m() ~ 1 }}{{ m()|length }}
{% macro m(caller) %}{{ caller() }}{% endmacro %}
{% macro m(a, caller=none) %}{{ a }}{{ caller() if caller else 'no' }}{% endmacro %}{{ m(1) }}{% call m(2) %}c{% endcall %}
{% macro a() %}{{ caller() }}{% endmacro %}{% macro b() %}{% call a() %}<{{ caller() }}>{% endcall %}{% endmacro %}{% call b() %}x{% endcall %}
{% macro a(x=missing) %}{{ x is defined }}{{ x }}{% endmacro %}{{ a() }}{{ a(none) }}
{{ html|safe }}{{ d|tojson|safe }}{{ (l|tojson|safe) ~ '<' }}{{ html|safe|length }}{{ none|safe }}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b')|title %}aaa{% endfilter %}
{% for x in l %}{% filter trim %} {{ x }} {% endfilter %}{% endfor %}
{% raw %}{{ not }}{% if %}{% endraw %}x{%- raw -%}  y  {%- endraw -%}  z
{# comment #}a{#- c -#} b {# {{ x }} {% if %} #}
{% generation %}gen {{ n }}{% set w = 1 %}{% endgeneration %}{{ w is defined }}
{% print n, s %}{% print 'x' %}
{% if true: %}colon{% endif %}{% for x in l: %}{{ x }}{% endfor %}
{{- n -}} x {{- n }} {{+ n }}
a {%- if true -%} b {%- endif -%} c
  {% if true %}
  x
  {%+ if true %}y{% endif +%}
  {% endif %}
end
{%- if true %} x {% endif -%} y
line
    {% set x = 1 %}
    {{ x }}
  {# c #}
 end
{% for x in l %}
  {{ x }}
{% endfor %}

tail
{{ '{{' }}{{ '%}' }}{{ "}}" }}{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a': {}} }}
{{ n }
{{ n
{% if %}
{% if n %}
{% endif %}
{% nope %}
{% for %}
{% for x in %}{% endfor %}
{{ }}
{{ 1 2 }}
{{ a b }}
{{ 'abc }}
{{ (1, 2 }}
{{ [1, 2) }}
{{ l[ }}
{{ ! }}
{{ a.'b' }}
{{ 1 is odd is even }}
{{ f(a=1, 2) }}
{{ f(**a, b) }}
{{ dict(a=1, a=2) }}
{% macro m(a=1, b) %}{% endmacro %}
{% set %}
{% set 1 = 2 %}
{% set x.y.z = 1 %}
{% call n %}{% endcall %}
{% call n() %}{% endcall %}
{% endfor %}
{% for loop in l %}{% endfor %}
{% for x in l %}{% set loop = 1 %}{% endfor %}
{% raw %}
{# open
{{ 'a'|nofilter }}
{% if false %}{{ 'a'|nofilter }}{{ 1 is notest }}{% endif %}ok
{% if true %}{{ 'a'|nofilter }}{% endif %}
{{ 'a'|nofilter if false else 'b' }}
{% if false %}{% for x in l %}{{ x|nofilter }}{% endfor %}{% endif %}
{% set x = l|map('upper') %}{{ x is iterable }}{{ x is sequence }}{{ x|list }}{{ x|list }}
{% set x = rows|selectattr('v', 'gt', 1) %}{% for r in x %}{{ loop.index }}{{ r.v }}{{ loop.last }}{{ loop.length }}{% endfor %}{{ x|list }}
{% set g = l|map('nope') %}not run
{% for x in l|reverse %}{{ x }}{{ loop.length }}{{ loop.last }}{% endfor %}{% for x in d.items() %}{{ x[0] }}{% endfor %}
{% for x in l %}{{ loop }}{% endfor %}
{% for x in l %}{% if loop.first %}{% set z = x %}{% endif %}{{ z }}{% endfor %}
{% for x in l %}{% set loop2 = loop %}{% for y in [1, 2] %}{{ loop2.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for x in l %}{% for y in l if loop.first %}{{ y }}{% endfor %};{% endfor %}
{% for x in l if loop.first %}{% endfor %}
{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}{{ j.sep }}{{ j.used }}
{% set _ = l.append(4) %}{{ l }}
{{ l.sort() }}
{{ raise_exception('x ' ~ n) }}
{{ raise_exception() }}
{% set s = s.replace('o', '0') %}{{ s }}{% set s = s|upper %}{{ s }}{% set l = l + [9] %}{{ l }}{{ l|length }}
{% set m = {'a': namespace(v=1)} %}{% set x = m.a %}{% set x.v = 2 %}{{ m.a.v }}
{{ namespace }}{{ joiner is callable }}{{ dict(a=1) }}
{% set content = messages is defined and messages or 'none' %}{{ content }}
{%- for x in l -%}
    {{- x -}}
    {%- if not loop.last -%} , {%- endif -%}
{%- endfor -%}
{{ "a
b" }}|{{ 'x' 
~ 'y' }}
{% set a = 1 -%}   
  b
{{ u }}{{ u|length }}{{ u[0] }}{{ [u] }}
{{ 1.foo }}{{ l.0 }}{{ l.0.x }}
{{ caller }}{{ loop }}{{ super is defined }}{{ varargs }}
{% filter indent(2) %}a
b{% endfilter %}
{% for a in [1,2,3] %}{% for b in [1,2] if b != a %}{{ a }}{{ b }}{{ loop.revindex }} {% else %}-{% endfor %}{% endfor %}
{% set x = [] %}{% set x = x + [{'r': 'u'}] %}{{ x[-1].r }}{{ (x|last)['r'] }}{{ x|map(attribute='r')|first }}
{% macro t(p, depth=0) %}{{ '  ' * depth }}{% for k, v in p.items() %}{{ k }}:{% if v is mapping %}{{ t(v, depth + 1) }}{% else %}{{ v }}{% endif %};{% endfor %}{% endmacro %}{{ t({'a': {'b': 1}, 'c': 2}) }}
""".strip("\n")
