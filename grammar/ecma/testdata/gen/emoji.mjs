// Prints emoji.go: the properties of emoji (UTS #51), as this version of Node has them.
//
//	node testdata/gen/emoji.mjs > emoji.go
const names = ['Emoji', 'Emoji_Component', 'Emoji_Modifier', 'Emoji_Modifier_Base', 'Emoji_Presentation',
	'Extended_Pictographic'];
console.log(`package ecma

import "github.com/ingotml/ingot/grammar/expr"

// emoji are the properties of emoji (https://www.unicode.org/reports/tr51/#Emoji_Properties), which package unicode
// lacks, of Unicode ${process.versions.unicode}. testdata/gen/emoji.mjs made them.
var emoji = map[string]expr.RuneSet{`);
for (const name of names) {
	const is = new RegExp(`\\p{${name}}`, 'u');
	const pairs = [];
	for (let c = 0; c <= 0x10ffff; c++) {
		if (c >= 0xd800 && c < 0xe000 || !is.test(String.fromCodePoint(c))) continue;
		if (pairs.length && pairs.at(-1) === c - 1) pairs[pairs.length - 1] = c;
		else pairs.push(c, c);
	}
	console.log(`\t"${name}": {`);
	for (let i = 0; i < pairs.length; i += 10)
		console.log('\t\t' + pairs.slice(i, i + 10).map((c) => '0x' + c.toString(16)).join(', ') + ',');
	console.log('\t},');
}
console.log('}');
