//go:build !unix

package place

import "io/fs"

func judge(string, fs.FileInfo, bool) error { return nil }

func judgeAbove(string, fs.FileInfo) error { return nil }
