#define INGOT_ISA avx512
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_avx512 = {avx512::kPanel, avx512::kChunk, avx512::tile, avx512::small_batch,
                                           avx512::join, avx512::pack};

}  // namespace ingot::cpu
