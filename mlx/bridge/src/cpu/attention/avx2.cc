#define INGOT_ISA avx2
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_avx2 = {avx2::kPanel, avx2::kChunk, avx2::tile, avx2::small_batch, avx2::join,
                                         avx2::pack};

}  // namespace ingot::cpu
