package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// Strftime formats a time like C's strftime in the C locale, with glibc's flags. The time has no zone, like
// datetime.now().
func Strftime(r *value.Run, t time.Time, layout string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(layout); {
		at := strings.IndexByte(layout[i:], '%')
		if at < 0 {
			b.WriteString(layout[i:])
			break
		}
		b.WriteString(layout[i : i+at])
		i += at
		r.Work(8)
		if err := r.Tick(); err != nil {
			return "", err
		}
		start := i
		i++
		var flag byte
		upperCase, swap := false, false
		for ; i < len(layout) && strings.IndexByte("_-0^#", layout[i]) >= 0; i++ {
			switch layout[i] {
			case '^':
				upperCase = true
			case '#':
				swap = true
			default:
				flag = layout[i]
			}
		}
		width := -1
		for ; i < len(layout) && value.IsDigit(layout[i]); i++ {
			if width = max(width, 0)*10 + int(layout[i]-'0'); width > 1000 {
				return "", value.LimitError("width %d in a date format exceeds 1000", width)
			}
		}
		for i < len(layout) && (layout[i] == 'E' || layout[i] == 'O') {
			i++
		}
		if i >= len(layout) {
			b.WriteString(layout[start:])
			break
		}
		c, size := utf8.DecodeRuneInString(layout[i:])
		i += size
		text, digits := dateField(t, c)
		if text == "" && digits == 0 && !strings.ContainsRune("zZ", c) {
			b.WriteString(layout[start:i]) // unknown conversion: unchanged
			continue
		}
		if swap {
			switch {
			case c == 'p':
				text = strings.ToLower(text)
			case c != 'P':
				text = strings.ToUpper(text)
			}
		}
		if upperCase {
			text = strings.ToUpper(text)
		}
		b.WriteString(padField(text, digits, flag, width))
		if err := r.Alloc(len(text) + width); err != nil {
			return "", err
		}
	}
	return b.String(), r.Alloc(b.Len())
}

// padField pads a number to its default or requested width.
func padField(text string, digits int, flag byte, width int) string {
	fill := "0"
	if digits < 0 { // blank padded by default
		fill, digits = " ", -digits
	}
	number := digits > 0
	switch {
	case flag == '_':
		fill = " "
	case flag == '0':
		fill = "0"
	case flag == '-' && width < 0:
		digits = 0
	case !number:
		fill = " "
	}
	if !number && flag != '0' {
		fill = " "
	}
	if width > digits {
		digits = width
	}
	for n := digits - len(text); n > 0; n-- {
		text = fill + text
	}
	return text
}

// dateField returns the text of a conversion and the default width of a number, negative if it is padded with blanks.
func dateField(t time.Time, c rune) (string, int) {
	num := func(n, digits int) (string, int) { return strconv.Itoa(n), digits }
	week := func(first int) int { return (t.YearDay() + 6 - (int(t.Weekday())-first+7)%7) / 7 }
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case 'a':
		return t.Weekday().String()[:3], 0
	case 'A':
		return t.Weekday().String(), 0
	case 'b', 'h':
		return t.Month().String()[:3], 0
	case 'B':
		return t.Month().String(), 0
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 2006"), 0
	case 'C':
		return num(t.Year()/100, 2)
	case 'd':
		return num(t.Day(), 2)
	case 'D', 'x':
		return t.Format("01/02/06"), 0
	case 'e':
		return num(t.Day(), -2)
	case 'f':
		return num(t.Nanosecond()/1000, 6)
	case 'F':
		return t.Format("2006-01-02"), 0
	case 'g':
		y, _ := t.ISOWeek()
		return num(y%100, 2)
	case 'G':
		y, _ := t.ISOWeek()
		return num(y, 1)
	case 'H':
		return num(t.Hour(), 2)
	case 'I':
		return num(hour12, 2)
	case 'j':
		return num(t.YearDay(), 3)
	case 'k':
		return num(t.Hour(), -2)
	case 'l':
		return num(hour12, -2)
	case 'm':
		return num(int(t.Month()), 2)
	case 'M':
		return num(t.Minute(), 2)
	case 'n':
		return "\n", 0
	case 'p':
		return t.Format("PM"), 0
	case 'P':
		return t.Format("pm"), 0
	case 'r':
		return t.Format("03:04:05 PM"), 0
	case 'R':
		return t.Format("15:04"), 0
	case 's':
		return strconv.FormatInt(t.Unix(), 10), 1
	case 'S':
		return num(t.Second(), 2)
	case 't':
		return "\t", 0
	case 'T', 'X':
		return t.Format("15:04:05"), 0
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1)
	case 'U':
		return num(week(0), 2)
	case 'V':
		_, w := t.ISOWeek()
		return num(w, 2)
	case 'w':
		return num(int(t.Weekday()), 1)
	case 'W':
		return num(week(1), 2)
	case 'y':
		return num(t.Year()%100, 2)
	case 'Y':
		return fmt.Sprint(t.Year()), 1
	case '%':
		return "%", 0
	}
	return "", 0
}
