package table

// SplitKind is how ranks that compute a model together divide a tensor.
type SplitKind string

// The kinds. A norm whose weights are divided normalizes over the channels of all ranks.
const (
	Replicated SplitKind = "replicated" // each rank has the whole tensor
	Column     SplitKind = "column"     // each rank has some outputs of a matrix, or their biases
	Row        SplitKind = "row"        // each rank has some inputs of a matrix; the ranks' outputs are added
	HeadGroup  SplitKind = "head group" // each rank has some KV heads, with the query heads that read them
	ByExpert   SplitKind = "expert"     // each rank has some experts
	ByToken    SplitKind = "token"      // each rank has the vectors of some tokens, if the table is large enough for that
	RankZero   SplitKind = "rank 0"     // rank 0 has the whole tensor, the others nothing of it
)

// Split is how a tensor divides over ranks. The zero value says nothing and is not in any table.
type Split struct {
	Kind SplitKind
	// Axis is the dimension that is divided. If it is the last one of a matrix, the ranks' outputs are added, and a bias
	// once.
	Axis int
	// Parts is the number of equal parts of the axis that stay whole, such as heads; 0 = each element is one.
	Parts int64
	// Within is the number of equal parts of each of the Parts, such as the query heads of a KV head, into which more
	// ranks than Parts divide it. 0: they do not, and all have the whole tensor, and all others that are divided alike.
	// Shared: of such ranks each has the part whole, such as a KV head.
	Within int64
	Shared bool
	// Sections are the sizes of tensors that are concatenated along the axis; each divides by itself. nil = one.
	Sections []int64
}

var (
	Whole      = Split{Kind: Replicated}
	Outputs    = Split{Kind: Column}
	Inputs     = Split{Kind: Row, Axis: 1}
	EachExpert = Split{Kind: ByExpert}
	EachToken  = Split{Kind: ByToken}
	OnRankZero = Split{Kind: RankZero}
)

// HeadRows divides the rows of a matrix by KV heads, HeadColumns the columns.
func HeadRows(kvHeads int) Split { return Split{Kind: HeadGroup, Parts: int64(kvHeads)} }

func HeadColumns(kvHeads int) Split { return Split{Kind: HeadGroup, Axis: 1, Parts: int64(kvHeads)} }

// QueryRows divides the rows of a matrix that computes query heads, or what each of them has, by KV heads, KeyRows
// those of a matrix for the KV heads, and QueryColumns the columns of a matrix that reads what query heads give. Ranks
// that share a KV head divide its query heads.
func QueryRows(heads, kvHeads int) Split {
	return Split{Kind: HeadGroup, Parts: int64(kvHeads), Within: int64(heads / kvHeads)}
}

func KeyRows(heads, kvHeads int) Split {
	s := QueryRows(heads, kvHeads)
	s.Shared = true
	return s
}

func QueryColumns(heads, kvHeads int) Split {
	s := QueryRows(heads, kvHeads)
	s.Axis = 1
	return s
}

// Bias returns how the bias of a matrix divides.
func (s Split) Bias() Split {
	if s.Axis > 0 {
		return Whole
	}
	return s
}
