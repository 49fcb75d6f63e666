package pdf

import (
	"encoding/ascii85"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where glyphs are painted decides about spaces and lines.
func TestLayout(t *testing.T) {
	for content, want := range map[string]string{
		`(One) Tj 0 -12 Td (two.) Tj`:                            "One\ntwo.",
		`(One) Tj 0 -30 Td (two.) Tj`:                            "One\n\ntwo.",
		`14 TL (One) Tj T* (two) Tj (three) '`:                   "One\ntwo\nthree",
		`14 TL 3 0 (four) " 0 -14 TD (five) Tj T* (six) Tj`:      "four\nfive\nsix",
		`[(W) 80 (ord) -300 (gap) -3000 (tab)] TJ`:               "Word gap\ttab",
		`[(One ) -300 (space)] TJ`:                               "One space",
		`(H) Tj 5 Ts (2) Tj 0 Ts (O) Tj`:                         "H2O",
		`(Bold) Tj 1 0 0 1 50.2 700 Tm (Bold) Tj`:                "Bold",
		`(right) Tj 1 0 0 1 10 700 Tm (left) Tj`:                 "right\nleft",
		`3 Tc (spaced) Tj`:                                       "s p a c e d",
		`1 Tc (tracked out) Tj`:                                  "tracked out",
		`-2.5 Tw (clo sed) Tj`:                                   "closed",
		`50 Tz [(half) -300 (wide)] TJ`:                          "half wide",
		`(page) Tj 0 1 -1 0 300 300 Tm (turned) Tj`:              "page\n\nturned",
		`(a\(b\)\\ \101\8\` + "\n" + `c\r) Tj <4D6f 7> Tj`:       `a(b)\ A8c Mop`,
		`/Span <</ActualText (whole)>> BDC (wh) Tj (o) Tj EMC`:   "whole",
		`/P BMC (kept) Tj EMC`:                                   "kept",
		`(\223quoted\224 \200 \001) Tj`:                          "“quoted” € \uFFFD",
		`(before) Tj ET BI /W 1 /H 1 ID ()EI x EI BT (after) Tj`: "before\n\nafter",
		`[(a) 1 2 (b) TJ (d) Tj 12 Tj`:                           "abd",
		`[(a) << /x ] >> (b)] TJ ) > } (c) Tj`:                   "abc",
	} {
		d, err := Text(t.Context(), painted(content))
		if err != nil || strings.Join(d.Pages, "\f") != want {
			t.Errorf("%s: %+v, %v, want %q", content, d, err, want)
		}
	}
	// Letters that are painted from right to left are a word.
	var b strings.Builder
	for i, c := range []string{"05D0", "05D1", "05D2"} {
		fmt.Fprintf(&b, "1 0 0 1 %d 700 Tm <%s> Tj ", 100-10*i, c)
	}
	if got := read(t, wideFont("/UniGB-UTF16-H", "", b.String())); got != "אבג" {
		t.Errorf("from right to left: %q", got)
	}
}

// wideFont returns a file whose font has codes of several bytes.
func wideFont(encoding, toUnicode, content string) []byte {
	font := "<</Type /Font /Subtype /Type0 /Encoding " + encoding + " /DescendantFonts [5 0 R]" + toUnicode + ">>"
	return made(page(font, "", data("", "BT /F 10 Tf 50 700 Td "+content+" ET"),
		"<</Subtype /CIDFontType2 /W [1 [500 600] 3 9 700] /DW 1000>>",
		data("", "1 begincodespacerange <0000> <FFFF> endcodespacerange "+
			"2 beginbfchar <0001> <0041> <0002> <00660066> endbfchar "+
			"2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<03B1> <D83DDE00>] endbfrange"),
		data("/WMode 1", "1 begincodespacerange <00> <7F> endcodespacerange "+
			"1 begincodespacerange <8000> <FFFF> endcodespacerange "+
			"1 begincidrange <8000> <8001> 1 endcidrange 1 begincidchar <41> 7 endcidchar"),
		data("", "2 beginbfchar <41> <0078> <8001> <0079> endbfchar"))...)
}

// Codes become characters by a font's own map, its encoding, or the names of its glyphs.
func TestFonts(t *testing.T) {
	const maps = " /ToUnicode 6 0 R"
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"map":            {wideFont("/Identity-H", maps, "<0001000200100012> Tj <00200021> Tj"), "Affacα😀"},
		"UCS-2":          {wideFont("/UniJIS-UCS2-H", "", "<65E5672C> Tj"), "日本"},
		"UTF-16":         {wideFont("/UniJIS-UTF16-V", "", "<D83DDE0000410042> Tj"), "😀AB"},
		"Shift JIS":      {wideFont("/90ms-RKSJ-H", "", "<93FA967B41> Tj"), "日本A"},
		"Chinese":        {wideFont("/GBK-EUC-H", "", "<D6D0CEC4> Tj"), "中文"},
		"Big5":           {wideFont("/ETen-B5-H", "", "<A4A4A4E5> Tj"), "中文"},
		"Korean":         {wideFont("/KSCms-UHC-H", "", "<B1DB> Tj"), "글"},
		"Japanese EUC":   {wideFont("/EUC-H", "", "<C6FC> Tj"), "日"},
		"embedded codes": {wideFont("7 0 R", " /ToUnicode 8 0 R", "<41800180> Tj"), "xy\uFFFD"},
		"differences": {named("/Differences [65 /eacute /fi /uni20AC /Gcaron /alphatonos /afii10017 /f_i.alt 200 /u1F600]",
			`(ABCDEFG\310) Tj`), "éfi€ǦάАfi😀"},
		"differences mac": {named("/BaseEncoding /MacRomanEncoding /Differences [1 /T]", `(\001\212) Tj`), "Tä"},
		"standard":        {named("", "(it's `\\256) Tj"), "it’s ‘fi"},
		"symbol": {made(page("<</Subtype /Type1 /BaseFont /Symbol>>", "",
			data("", `BT /F 9 Tf (abG\267) Tj ET`))...), "αβΓ•"},
		"built in": {made(page("<</Subtype /Type1 /BaseFont /X /FontDescriptor <</FontFile 5 0 R>> >>", "",
			data("", `BT /F 9 Tf (ab) Tj ET`),
			data("", "/Encoding 256 array dup 97 /Eacute put dup 98 /germandbls put eexec dup 97 /x put"))...), "Éß"},
		"type 3": {made(page("<</Subtype /Type3 /FontMatrix [.01 0 0 .01 0 0] /FirstChar 65 /Widths [60 60] "+
			"/Encoding <</Differences [65 /a /b]>> >>", "", data("", `BT /F 10 Tf [(A) -60 (B)] TJ ET`))...), "ab"},
	} {
		if got := read(t, c.file); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// named returns a file whose font has an encoding with details.
func named(encoding, content string) []byte {
	font := "<</Type /Font /Subtype /Type1 /BaseFont /Abc /Encoding <<" + encoding + ">> >>"
	return made(page(font, "", data("", "BT /F 10 Tf "+content+" ET"))...)
}

// Text is found wherever content may be.
func TestContents(t *testing.T) {
	const say = "BT /F 10 Tf (%s) Tj ET"
	hi := fmt.Sprintf(say, "Hi")
	var b strings.Builder
	e := ascii85.NewEncoder(&b)
	_, _ = e.Write([]byte(hi))
	_ = e.Close()
	for name, c := range map[string]struct {
		objects []string
		want    string
	}{
		"plain":       {page(sansFont, "", data("", hi)), "Hi"},
		"deflate":     {page(sansFont, "", zipped(t, "", hi)), "Hi"},
		"cut":         {page(sansFont, "", data("/Filter /FlateDecode", deflated(t, hi)[:len(deflated(t, hi))-4])), "Hi"},
		"two filters": {page(sansFont, "", data("/Filter [/ASCIIHexDecode /Fl]", fmt.Sprintf("%x>", deflated(t, hi)))), "Hi"},
		"base 85":     {page(sansFont, "", data("/Filter /ASCII85Decode", b.String()+"~>")), "Hi"},
		"run lengths": {page(sansFont, "", data("/Filter /RL", "\x08BT /F 10 \x0cTf (Hi) Tj ET\x80")), "Hi"},
		"LZW":         {page(sansFont, "", data("/Filter /LZWDecode", lzwText(hi))), "Hi"},
		"predicted": {page(sansFont, "", data("/Filter /FlateDecode /DecodeParms <</Predictor 15 /Columns 8>>",
			deflated(t, predicted(fmt.Sprintf("%-40s", hi), 8)))), "Hi"},
		"wrong length": {page(sansFont, "", strings.Replace(data("", hi), "/Length ", "/Length 9", 1)), "Hi"},
		"length apart": {page(sansFont, "", strings.Replace(data("", hi), "/Length 22", "/Length 5 0 R", 1), "22"), "Hi"},
		"parts":        {page(sansFont, "", "[5 0 R 6 0 R]", data("", "BT /F 10 Tf (Hi"), data("", ") Tj ET")), "Hi"},
		"form": {page(sansFont, "/XObject <</X 5 0 R>>", data("", "/X Do /X Do"),
			data("/Subtype /Form /Matrix [1 0 0 1 0 -40]", hi)), "Hi"},
		"own resources": {page(sansFont, "/XObject <</X 5 0 R>>",
			data("", "q 1 0 0 1 0 50 cm /X Do Q "+fmt.Sprintf(say, "there")),
			data("/Subtype /Form /Resources <</Font <</F "+monoFont+">> >>", hi)), "Hi\n\nthere"},
		"picture": {page(sansFont, "/XObject <</X 5 0 R>>", data("", hi+" /X Do"),
			data("/Subtype /Image /Filter /DCTDecode", "x")), "Hi"},
		"fields": {[]string{catalog, pageTree, "<</Type /Page /Annots [4 0 R 5 0 R 6 0 R]>>",
			"<</Subtype /Widget /Rect [10 500 60 520] /AP <</N 7 0 R>> >>",
			"<</Subtype /Widget /Rect [10 400 60 420] /AS /On /AP <</N <</On 8 0 R /Off 7 0 R>> >> >>",
			"<</Subtype /Widget /F 2 /AP <</N 7 0 R>> >>",
			data("/Subtype /Form /BBox [0 0 50 20] /Resources <</Font <</F "+sansFont+">> >>", fmt.Sprintf(say, "Ada")),
			data("/Subtype /Form /BBox [0 0 50 20] /Resources <</Font <</F "+sansFont+">> >>",
				fmt.Sprintf(say, "yes"))}, "Ada\n\nyes"},
		"inherited": {[]string{catalog, "<</Type /Pages /Kids [3 0 R] /Resources <</Font <</F 6 0 R>> >> >>",
			"<</Type /Pages /Kids [4 0 R 7 0 R 4 0 R 3 0 R]>>", "<</Type /Page /Contents 5 0 R>>", data("", hi), sansFont,
			"<</Contents 5 0 R>>"}, "Hi\fHi"},
		"marked by name": {page(sansFont, "/Properties <</P <</ActualText <FEFF00C4>>> >>",
			data("", "/Span /P BDC "+hi+" EMC")), "Ä"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, made(c.objects...)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// predicted returns rows of bytes as differences to what each of the five methods predicts.
func predicted(s string, row int) string {
	var out []byte
	for at := 0; at < len(s); at += row {
		kind := at / row % 5
		out = append(out, byte(kind))
		for i := at; i < at+row; i++ {
			var left, up, corner byte
			if i > at {
				left = s[i-1]
			}
			if at > 0 {
				up = s[i-row]
			}
			if i > at && at > 0 {
				corner = s[i-row-1]
			}
			guess := []byte{0, left, up, byte((int(left) + int(up)) / 2), paeth(left, up, corner)}[kind]
			out = append(out, s[i]-guess)
		}
	}
	return string(out)
}

// lzwText returns text as nine-bit codes, none of which stands for several characters.
func lzwText(s string) string {
	var out []byte
	bits, n := 0, 0
	put := func(code int) {
		for bits, n = bits<<9|code, n+9; n >= 8; n -= 8 {
			out = append(out, byte(bits>>(n-8)))
		}
	}
	put(256)
	for i := range len(s) {
		put(int(s[i]))
	}
	put(257)
	return string(append(out, byte(bits<<(8-n))))
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"empty":      {nil, ErrNoPDF},
		"other":      {[]byte("PK\x03\x04 and so on"), ErrNoPDF},
		"no page":    {made("<</Type /Catalog>>"), ErrNoPDF},
		"header":     {[]byte("%PDF-1.7"), ErrNoPDF},
		"no text":    {made(page(sansFont, "", data("", "0 0 m 10 10 l S"))...), ErrNoText},
		"blank":      {painted("( ) Tj"), ErrNoText},
		"unmapped":   {wideFont("/Identity-H", "", "<00030004> Tj"), ErrUnmapped},
		"no content": {made(catalog, pageTree, "<</Type /Page>>"), ErrNoText},
		"scheme":     {made(append(page(sansFont, "", data("", "")), "<</Filter /Other>>")...), ErrNoText},
	} {
		if d, err := Text(t.Context(), c.file); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", name, d, err, c.want)
		}
	}
}

// Files as programs write them: see testdata/gen/pdf/documents.py.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pdf")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		kind, _, _ := strings.Cut(strings.TrimSuffix(name, ".pdf"), "-")
		d, err := Text(t.Context(), b)
		if strings.Contains(name, "password") {
			if !errors.Is(err, ErrPassword) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := os.ReadFile("testdata/" + kind + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := "# " + d.Title + "\n" + strings.Join(d.Pages, "\n\f\n") + "\n"; got != string(want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}
