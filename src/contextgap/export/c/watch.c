
/* The watch, as in contextgap's insight/betting.py: conformal p-values, and bets on them. */
#define WATCH_EARLY 1000.0  /* rows after which a change counts as late */
#define WATCH_SMALLEST 1e-5 /* p-value that counts */
#define WATCH_RICHEST 1e30

/* SplitMix64's finaliser of a place, as a number between 0 and 1, which breaks ties. */
static double tie_breaker(uint64_t place)
{
    uint64_t word = (place ^ WATCH_SALT) + UINT64_C(0x9E3779B97F4A7C15);
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    word = word ^ (word >> 31);
    return ((double)(word >> 11) + 0.5) / 9007199254740992.0;
}

/* Squared distance, in the kernel's feature space, to the log. */
static double distance_to_log(const real *x)
{
    double nearest = HUGE_VAL;
#ifdef HAS_WARP
    real seen[NUMBERS];
    warp(x, seen);
#else
    const real *const seen = x;
#endif
    for (size_t i = 0; i < WATCH_POINTS; i++) {
        const double k = (double)kernel(seen, &watch_points[i * NUMBERS]);
        const double apart = (double)watch_self[i] - (2.0 * k);
        nearest = (apart < nearest) ? apart : nearest;
    }
    return nearest + (double)KERNEL_SELF(seen);
}

/* The highest mean of another eligible arm minus the own one; 0 for an only arm. */
static double lead(const unsigned char *eligible, const contextgap_decision *decision)
{
    double best = -HUGE_VAL;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        const double mean = (double)decision->mean[arm];
        if ((arm != decision->arm) && is_eligible(eligible, arm) && (mean > best)) {
            best = mean;
        }
    }
    return (best < -DBL_MAX) ? 0.0 : (best - (double)decision->mean[decision->arm]);
}

/* The rank of a score among those so far, at random within its bin. */
static double p_value(uint32_t *counts, const double *edges, double score, double tie)
{
    int bin = 0;
    double above = 0.0;
    double total = 0.0;
    for (int i = 0; i < (CONTEXTGAP_WATCH_BINS - 1); i++) {
        bin += (score > edges[i]) ? 1 : 0;
    }
    counts[bin]++;
    for (int i = 0; i < CONTEXTGAP_WATCH_BINS; i++) {
        above += (i > bin) ? (double)counts[i] : 0.0;
        total += (double)counts[i];
    }
    return (above + (tie * (double)counts[bin])) / total;
}

static void bet(float *won, double stake, double p)
{
    for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_BETS; i++) {
        const double side = ((i % 2U) == 0U) ? p : (1.0 - p);
        const double q = (side < WATCH_SMALLEST) ? WATCH_SMALLEST : side;
        const double paid = (i < 2U) ? (1.5 - q) : (0.5 / sqrt(q));
        const double now = ((double)won[i] + stake) * paid;
        won[i] = (float)((now > WATCH_RICHEST) ? WATCH_RICHEST : now);
    }
}

static void end_block(contextgap_watch *watch, const double *sums)
{
    const double t = (double)(watch->rows / CONTEXTGAP_WATCH_BLOCK);
    const uint64_t first = (uint64_t)((watch->rows / CONTEXTGAP_WATCH_BLOCK) - 1U) *
                           (uint64_t)CONTEXTGAP_WATCH_STATISTICS;
    const double share = 1.0 / (double)(CONTEXTGAP_WATCH_STATISTICS * CONTEXTGAP_WATCH_BETS);
    const double stake =
        share * ((0.5 * WATCH_EARLY) / (((t + WATCH_EARLY) - 1.0) * (t + WATCH_EARLY)));
    for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_STATISTICS; i++) {
        const double score = sums[i] / (double)CONTEXTGAP_WATCH_BLOCK;
        const double *edges = &watch_edges[i * (size_t)(CONTEXTGAP_WATCH_BINS - 1)];
        bet(watch->won[i], stake, p_value(watch->counts[i], edges, score, tie_breaker(first + i)));
    }
    if ((watch->alarm == 0U) &&
        (contextgap_watch_evidence(watch) >= (1.0 / CONTEXTGAP_WATCH_FAILURE))) {
        watch->alarm = watch->rows;
    }
}

void contextgap_watch_start(contextgap_watch *watch)
{
    watch->rows = 0U;
    watch->failed = 0U;
    watch->alarm = 0U;
    for (size_t arm = 0; arm < (size_t)CONTEXTGAP_ARMS; arm++) {
        watch->arms[arm] = 0U;
    }
    for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_STATISTICS; i++) {
        for (size_t bin = 0; bin < (size_t)CONTEXTGAP_WATCH_BINS; bin++) {
            watch->counts[i][bin] = watch_counts[(i * (size_t)CONTEXTGAP_WATCH_BINS) + bin];
        }
        for (size_t one = 0; one < (size_t)CONTEXTGAP_WATCH_BETS; one++) {
            watch->won[i][one] =
                0.5F / (float)(CONTEXTGAP_WATCH_STATISTICS * CONTEXTGAP_WATCH_BETS);
        }
#if CONTEXTGAP_WATCH_BLOCK > 1
        watch->sums[i] = 0.0;
#endif
    }
}

int contextgap_watch_see(contextgap_watch *watch, const contextgap_real *context,
                         const unsigned char *eligible, const contextgap_decision *decision)
{
#if CONTEXTGAP_HAS_COLUMNS
    real x[NUMBERS];
    (void)spread(context, x);
#else
    const real *x = context;
#endif
    if (!is_finite_context(x) || (decision->arm < 0)) {
        watch->failed++;
    } else {
        watch->rows++;
        watch->arms[decision->arm]++;
        double scores[CONTEXTGAP_WATCH_STATISTICS];
        scores[0] = distance_to_log(x);
        scores[1] = lead(eligible, decision);
        scores[2] = (double)decision->mean[decision->arm];
        scores[3] = watch_surprise[decision->arm];
        for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_COLUMNS; i++) {
            scores[4U + i] = (double)x[watch_columns[i]];
        }
#if CONTEXTGAP_WATCH_BLOCK > 1
        for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_STATISTICS; i++) {
            watch->sums[i] += scores[i];
        }
        if ((watch->rows % CONTEXTGAP_WATCH_BLOCK) == 0U) {
            end_block(watch, watch->sums);
            for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_STATISTICS; i++) {
                watch->sums[i] = 0.0;
            }
        }
#else
        end_block(watch, scores);
#endif
    }
    return (watch->alarm > 0U) ? 1 : 0;
}

double contextgap_watch_evidence(const contextgap_watch *watch)
{
    const double t = (double)(watch->rows / CONTEXTGAP_WATCH_BLOCK);
    const double reserve = (0.5 * WATCH_EARLY) / (t + WATCH_EARLY);
    double most = 0.0;
    for (size_t i = 0; i < (size_t)CONTEXTGAP_WATCH_STATISTICS; i++) {
        double total = reserve / (double)CONTEXTGAP_WATCH_STATISTICS;
        for (size_t one = 0; one < (size_t)CONTEXTGAP_WATCH_BETS; one++) {
            total += (double)watch->won[i][one];
        }
        most = (total > most) ? total : most;
    }
    return most;
}
