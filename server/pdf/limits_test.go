package pdf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
)

// TestLimits reaches each limit. What was read before is kept.
func TestLimits(t *testing.T) {
	nested := strings.Repeat("[", limits.PDFNesting+1)
	kids := "<</Type /Pages /Kids [" + strings.Repeat("<<>> ", limits.PDFPages+1) + "]>>"
	zeros := strings.Repeat("\x00", 1<<20)
	sum := page(sansFont, "", "[5 0 R"+strings.Repeat(" 6 0 R", 80)+"]", data("", "BT /F 10 Tf (Hi) Tj ET\n"),
		zipped(t, "", zeros))
	pages := func(n int) []byte {
		list := []string{catalog, "<</Type /Pages /Resources <</Font <</F " + sansFont + ">> >> /Kids [" +
			strings.Repeat("<</Type /Page /Contents 4 0 R>> <</Type /Page /Contents 3 0 R>> ", n) + "]>>",
			zipped(t, "", strings.Repeat(" ", 8<<20)), data("", "BT /F 10 Tf (Hi) Tj ET")}
		return made(list...)
	}
	deep := []string{catalog, pageTree}
	for i := range limits.PDFNesting + 5 {
		deep = append(deep, fmt.Sprintf("<</Type /Pages /Kids [%d 0 R]>>", i+4))
	}
	looped := page(sansFont, "/XObject <</X 5 0 R>>", data("", "BT /F 10 Tf (Hi) Tj ET /X Do"),
		data("/Subtype /Form /Resources <</XObject <</X 5 0 R>> >>", "/X Do"))
	long := zipped(t, "", "BT /F 10 Tf 0 10 TD "+strings.Repeat("("+strings.Repeat("x", 1000)+") '", 300)+" ET")
	text := made(page(sansFont, "", "["+strings.Repeat("5 0 R ", 20)+"]", long)...)
	for name, c := range map[string]struct {
		file []byte
		says string
		kept string // a part of the text; "": there is none
	}{
		"bytes":   {[]byte("%PDF-1.7" + strings.Repeat(" ", limits.PDFBytes)), "exceeds the limit of 33554432", ""},
		"nesting": {made(catalog, nested), "deeper than 50 levels", ""},
		"values":  {made(catalog, "["+strings.Repeat("0 ", limits.PDFValues)+"]"), "more than 262144 values", ""},
		"tree":    {made(deep...), "deeper than 50 levels", ""},
		"forms":   {made(looped...), "deeper than 50 levels", "Hi"},
		"memory":  {made(sum...), "more than 67108864 bytes of memory", ""},
		"work":    {pages(limits.PDFWork/(16<<20) + 1), "more than 134217728 bytes of work", "Hi"},
		"text":    {text, "exceeds 4194304 bytes", "xxx"},
		"pages":   {made(catalog, kids), "more than 2000 pages", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Text(t.Context(), c.file)
			got := fmt.Sprint(err)
			if err == nil {
				got = d.Rest
			}
			if !strings.Contains(got, c.says) || (err == nil) != (c.kept != "") {
				t.Fatalf("%.200q, want %q", got, c.says)
			}
			if err == nil && !strings.Contains(strings.Join(d.Pages, ""), c.kept) {
				t.Errorf("%.200q lacks %q", d.Pages, c.kept)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Text(ctx, pages(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Files that once made readers loop or fail are read up to the damage, or refused.
func TestDamaged(t *testing.T) {
	good := string(painted("(Hi) Tj"))
	for name, c := range map[string]struct{ file, want string }{
		"junk before the header": {"junk\n" + good, "Hi"},
		"no end":                 {good[:strings.Index(good, "xref")], "Hi"},
		"wrong offsets":          {strings.Replace(good, "%PDF-1.7\n", "%PDF-1.7\n% moved by this\n", 1), "Hi"},
		"table loops": {strings.Replace(good, "/Size",
			fmt.Sprintf("/Prev %d /Size", strings.Index(good, "xref")), 1), "Hi"},
		"huge table":         {strings.Replace(good, "xref\n0 5", "xref\n0 99999999", 1), "Hi"},
		"negative":           {strings.Replace(good, "/Size 5", "/Size -5 /Prev -1 /XRefStm -1", 1), "Hi"},
		"no object":          {strings.Replace(good, "4 0 obj", "4 0 xxx", 1), ""},
		"object in itself":   {strings.Replace(good, "/Kids [3 0 R]", "/Kids [2 0 R 3 0 R]", 1), "Hi"},
		"a length in itself": {strings.Replace(good, "/Length 36", "/Length 4 0 R", 1), "Hi"},
		"open string":        {strings.Replace(good, "(Hi) Tj", "(Hi    ", 1), ""},
		"open dictionary":    {strings.Replace(good, "/Kids [3 0 R]>>", "/Kids [3 0 R  ", 1), "Hi"},
		"huge predictor": {string(made(page(sansFont, "", data("/Filter /Fl /DecodeParms <</Predictor 12 /Columns 1000000 "+
			"/Colors 1000000 /BitsPerComponent 1000000>>", deflated(t, "\x00BT /F 10 Tf (Hi) Tj ET")))...)), "Hi"},
		"huge table stream": {"%PDF-1.5\n1 0 obj\n<</Type /XRef /Size 20000000000 /W [1 2 1] /Length 0>>\n" +
			"stream\n\nendstream\nendobj\nstartxref\n9\n%%EOF", ""},
		"stream in itself": {"%PDF-1.5\n1 0 obj\n<</Type /ObjStm /N 1 /First 4 /Length 20>>\nstream\n" +
			"1 0 <</Extends 1 0 R>>\nendstream\nendobj\n2 0 obj\n<</Type /Catalog /Pages 1 0 R>>\nendobj\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Text(t.Context(), []byte(c.file))
			got := ""
			if err == nil {
				got = strings.Join(d.Pages, "\f")
			}
			if got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// FuzzText: whatever the file, reading ends, and a text is valid and bounded.
func FuzzText(f *testing.F) {
	f.Add(painted(`[(Hi) -300 (there)] TJ`))
	f.Add(wideFont("7 0 R", " /ToUnicode 6 0 R", "<0041800180> Tj"))
	f.Add(made(page(sansFont, "/XObject <</X 5 0 R>>", zipped(f, "", "/X Do BI /W 1 ID x EI"),
		data("/Subtype /Form", "/X Do"))...))
	f.Add([]byte("%PDF-1.5\n1 0 obj\n<</Type /XRef /Size 9 /W [1 2 1] /Length 4>>\nstream\n\x01\x00\x09\x00" +
		"\nendstream\nendobj\nstartxref\n9"))
	f.Add(made(append(page(sansFont, "", data("", "")),
		"<</Filter /Standard /V 4 /R 4 /CF <</S <</CFM /AESV2>> >> /StmF /S>>")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Text(t.Context(), b)
		if err != nil {
			return
		}
		for _, p := range append(d.Pages, d.Title) {
			if !utf8.ValidString(p) || len(p) > limits.PDFText*2 {
				t.Errorf("%d bytes, valid %v", len(p), utf8.ValidString(p))
			}
		}
	})
}
