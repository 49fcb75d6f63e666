package vocab

// The patterns of pre-tokenizers.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|`
	lines        = `|\s*[\r\n]+|\s+(?!\S)|\s+`

	llama3Pattern = contractions + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines
	qwen2Words    = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines
	qwen2Pattern  = contractions + qwen2Words
	qwen35Pattern = contractions + `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + lines
	minicpmWords  = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines
	seedPattern   = contractions + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+` + lines

	bailingPattern = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|` +
		`\s+(?!\S)|\s+`
	exaoneMoePattern = contractions + `[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	jais2Pattern = contractions + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|` +
		`\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|` +
		`\s{1,2}(?!\S)|\s{1}`

	upperWord  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	lowerWord  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	shortened  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	afterWords = `| ?[^\s\p{L}\p{N}]+[\r\n/]*` + lines

	tekkenPattern = upperWord + `|` + lowerWord + `|\p{N}` + afterWords
	gpt4oPattern  = upperWord + shortened + `|` + lowerWord + shortened + `|\p{N}{1,3}` + afterWords

	kimiUpper   = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiLower   = `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiPattern = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?` + kimiUpper + `*` + kimiLower + `+` + shortened +
		`|[^\r\n\p{L}\p{N}]?` + kimiUpper + `+` + kimiLower + `*` + shortened +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines

	cjkWords      = "[一-龥぀-ゟ゠-ヿ]+"
	deepseekWords = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
		" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	deepseekHan     = `[一-龥ࠀ-一가-\x{D7FF}]+`
	deepseekMarks   = `\s?[!-/:-~！-／：-～‘-‟　-。]+`
	deepseekLetters = `\s?[A-Za-z` +
		`µÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛ` +
		`ὝὟ-ώᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-` +
		`ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`

	gpt2Pattern  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	bloomPattern = ` ?[^(\s|.,!?…。，、।۔،)]+`

	youtuScripts = `[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|` + cjkWords
	afmoeScripts = `[一-鿿㐀-䶿豈-\x{FAFF}぀-ゟ゠-ヿ･-ﾟ⼀-\x{2FDF}เ-\x{0E7F}\x{0E80}-\x{0EFF}ក-\x{17FF}က-႟ꩠ-ꩿꧠ-\x{A9FF}` +
		`가-\x{D7AF}ᄀ-ᇿ]+`
)
