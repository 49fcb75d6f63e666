#define INGOT_ISA avx512
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_avx512 = {
    .panel = avx512::kPanel,
    .chunk = avx512::kChunk,
    .tile = avx512::tile,
    .small_batch = avx512::small_batch,
    .join = avx512::join,
    .pack = avx512::pack,
};

}  // namespace ingot::cpu
