package limits

// Limits of PDF files.
const (
	// PDFBytes bounds a file.
	PDFBytes = 32 << 20
	// PDFWork bounds what reading a file takes, in bytes that are scanned, decompressed or shown.
	PDFWork = 128 << 20
	// PDFMemory bounds the memory to read a file, without the file: tables, fonts, decompressed streams, text.
	PDFMemory = 64 << 20
	// PDFText bounds the text of a file.
	PDFText = 4 << 20
	// PDFPages bounds the pages that are read.
	PDFPages = 2000
	// PDFValues bounds the values of an object.
	PDFValues = 1 << 18
	// PDFNesting bounds objects, page trees and forms within each other.
	PDFNesting = 50
	// PDFs bounds the files of a request that are read.
	PDFs = 64
	// PDFsKept and PDFTextsKept bound the files whose texts a server keeps, and these texts.
	PDFsKept     = 128
	PDFTextsKept = 16 << 20
)

func init() {
	const test = "server/pdf.TestLimits"
	register(
		Limit{"PDFBytes", "a PDF file", PDFBytes, Bytes, test},
		Limit{"PDFWork", "bytes of a PDF that are scanned, decompressed or shown", PDFWork, Bytes, test},
		Limit{"PDFMemory", "memory to read a PDF", PDFMemory, Bytes, test},
		Limit{"PDFText", "text of a PDF", PDFText, Bytes, test},
		Limit{"PDFPages", "pages of a PDF that are read", PDFPages, Count, test},
		Limit{"PDFValues", "values of an object in a PDF", PDFValues, Count, test},
		Limit{"PDFNesting", "nesting of objects, page trees and forms in a PDF", PDFNesting, Levels, test},
		Limit{"PDFs", "PDFs of a request that are read", PDFs, Count, "server.TestManyPDFs"},
		Limit{"PDFsKept", "PDFs whose text a server keeps", PDFsKept, Count, "server.TestDocumentsKept"},
		Limit{"PDFTextsKept", "text of PDFs that a server keeps", PDFTextsKept, Bytes, "server.TestDocumentsKept"},
	)
}
