package pdf

import (
	"strconv"
	"strings"
)

// Widths of the characters from space to tilde in the standard fonts, which files need not repeat.
var (
	sans = widths(`
		278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278
		278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722
		667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556
		556 333 500 278 556 500 722 500 500 500 334 260 334 584`)
	serif = widths(`
		250 333 408 500 500 833 778 180 333 333 500 564 250 333 250 278 500 500 500 500 500 500 500 500 500 500 278
		278 564 564 564 444 921 722 667 667 722 611 556 722 722 333 389 722 611 889 722 722 556 722 667 556 611 722
		722 944 722 722 611 333 278 333 469 500 333 444 500 444 500 444 333 500 500 278 278 500 278 778 500 500 500
		500 333 389 278 500 500 722 500 500 444 480 200 480 541`)
	mono = widths(strings.Repeat("600 ", 95))
)

func widths(numbers string) *[95]uint16 {
	var w [95]uint16
	for i, field := range strings.Fields(numbers) {
		n, err := strconv.ParseUint(field, 10, 16)
		if err != nil {
			panic(err)
		}
		w[i] = uint16(n)
	}
	return &w
}

// standardWidths returns about the widths of a font's characters. Bold and slanted ones are a little wider.
func standardWidths(font string) *[95]uint16 {
	switch {
	case strings.Contains(font, "Courier"), strings.Contains(font, "Mono"):
		return mono
	case strings.Contains(font, "Times"), strings.Contains(font, "Serif"):
		return serif
	}
	return sans
}
