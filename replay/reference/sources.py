"""The documents that rules, scores and methods are taken from, with where to find them."""

from typing import NamedTuple


class Source(NamedTuple):
    """A document: how it is cited, its full title, where to find it, and what it is used for."""

    short: str
    title: str
    where: str
    gives: str


SOURCES = (
    Source(
        "Metaculus, Tournament Scoring",
        'Metaculus, "Metaculus Tournament Scoring [Updated 4.6.22]", April 6th, 2022',
        "https://www.metaculus.com/notebooks/8506/metaculus-tournament-scoring-updated-4622/",
        "relative scores, coverage, take and prizes: the `relative` presets",
    ),
    Source(
        "Metaculus, Scores FAQ",
        'Metaculus, "Scores FAQ"',
        "https://www.metaculus.com/help/scores-faq/",
        "baseline, peer, spot and legacy scores, hidden periods, prizes",
    ),
    Source(
        "Metaculus's published code",
        "Metaculus, source code, `utils/the_math/`, `utils/csv_utils.py`, `scoring/`, `users/services/`; commit "
        "100c4088 if none is given",
        "https://github.com/Metaculus/metaculus",
        "recency weights, the consensus of multiple choice, numeric resolutions, how the least prize is applied; "
        "`import-from metaculus`; `calibration_time_weighted`: bins and weights",
    ),
    Source(
        "Metaculus, forecasting-tools",
        "Metaculus, forecasting-tools, source code, `forecasting_tools/data_models/numeric_report.py`, commit "
        "f262cffc of 2 April 2026",
        "https://github.com/Metaculus/forecasting-tools",
        "the cdf of a few points: the method `metaculus-2026-04`",
    ),
    Source(
        "Good Judgment Open, FAQ",
        'Good Judgment Open, "Frequently Asked Questions (FAQ)", last updated on 3 June 2024, "How are my forecasts '
        'scored for accuracy?"',
        "https://www.gjopen.com/faq",
        "the reference `median_score`",
    ),
    Source(
        "Autocast competition of 2022",
        'ML Safety, Autocast forecasting competition, official rules: "Evaluation", "Warm-up Round", "How can I '
        'demonstrate faithful simulation of forecasting?"; and the evaluation notebooks',
        "https://forecasting.mlsafety.org/official-rules",
        "`autocast-2022`; cut-offs, attestations, and the sources that forecasts may use",
    ),
    Source(
        "Forecaster Arena, Scoring Methodology",
        'Forecaster Arena, "Scoring Methodology", `docs/SCORING.md`',
        "https://github.com/setrf/forecasterarena",
        "confidence from bets, Brier scores and skill, aggregates, the classes of Brier scores",
    ),
    Source(
        "Forecaster Arena, Methodology v1",
        'Forecaster Arena, "Forecaster Arena Methodology v1", `docs/METHODOLOGY_v1.md`, March 7th, 2026',
        "https://github.com/setrf/forecasterarena",
        "cohorts, decisions, positions, snapshots: `arena-v1`",
    ),
    Source(
        "Kalshi, Fee Schedule",
        'Kalshi, "Fee Schedule", "General Trading Fees"; and Kalshi, API documentation, "Fee Rounding"',
        "https://kalshi.com/docs/kalshi-fee-schedule.pdf; https://docs.kalshi.com/getting_started/fee_rounding",
        "fees of trades: `arena-v1-kalshi`",
    ),
    Source(
        "Polymarket, documentation",
        'Polymarket, documentation, "Fees", "Fee Structure" and "Fee Precision"',
        "https://docs.polymarket.com/trading/fees",
        "fees of trades: `arena-v1-polymarket`",
    ),
    Source(
        "Forecaster Arena's published code",
        "Forecaster Arena, source code",
        "https://github.com/setrf/forecasterarena",
        "cohorts, bets, sales, positions and settlements where the documents leave them open",
    ),
    Source(
        "Forecaster Arena, Methodology v2",
        "Forecaster Arena, `docs/METHODOLOGY_v2.md`",
        "https://github.com/setrf/forecasterarena",
        "all bets of a decision or none, the five newest cohorts: `arena-v2`",
    ),
    Source(
        "Cultivate Labs, Forecasts",
        'Cultivate Labs, Forecasts, support article "Why didn\'t I receive a score in a question I forecasted?"',
        "https://www.cultivatelabs.com/support/forecasts",
        "which days count: `brier-daily`",
    ),
    Source(
        "Brier (1950)",
        'G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78(1):1-3',
        "doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2",
        "the kernels `brier_sum` and, halved, `brier`",
    ),
    Source(
        "Prophet Arena, arena-evaluation",
        'Prophet Arena, arena-evaluation on PyPI, "Semantics (Arena rules v2)"',
        "https://pypi.org/project/arena-evaluation/",
        "the kernel `brier_mean`",
    ),
    Source(
        "Yang et al. (2026)",
        'Q. Yang and others, "LLM-as-a-Prophet: Understanding Predictive Intelligence with Prophet Arena", '
        "International Conference on Learning Representations",
        "arXiv:2510.17638",
        "the average return: the table `implied_returns`",
    ),
    Source(
        "Kelly (1956)",
        'J. L. Kelly, "A new interpretation of information rate", Bell System Technical Journal 35(4):917-926',
        "doi:10.1002/j.1538-7305.1956.tb03809.x",
        "the stake of a bettor who knows the probability: the table `implied_returns`",
    ),
    Source(
        "Foresight Arena (2026)",
        "Foresight Arena, a benchmark of forecasts against market prices",
        "arXiv:2605.00420",
        "alpha, the Brier score of the prices less one's own: the table `implied_returns`",
    ),
    Source(
        "Murphy (1973)",
        'A. H. Murphy, "A new vector partition of the probability score", Journal of Applied Meteorology 12(4):595-600',
        "doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2",
        "reliability, resolution and uncertainty",
    ),
    Source(
        "Spearman (1904)",
        'C. Spearman, "The proof and measurement of association between two things", American Journal of Psychology '
        "15(1):72-101",
        "doi:10.2307/1412159",
        "the correlation of ranks in `what-if`",
    ),
    Source(
        "Hyndman and Fan (1996)",
        'R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50(4):361-365',
        "doi:10.1080/00031305.1996.10473566",
        "linear interpolation of a cdf: the method `linear`",
    ),
    Source(
        "Fritsch and Carlson (1980)",
        'F. N. Fritsch and R. E. Carlson, "Monotone piecewise cubic interpolation", SIAM Journal on Numerical Analysis '
        "17(2):238-246",
        "doi:10.1137/0717021",
        "when a cubic polynomial does not fall: the method `monotone_cubic`",
    ),
    Source(
        "Fritsch and Butland (1984)",
        'F. N. Fritsch and J. Butland, "A method for constructing local monotone piecewise cubic interpolants", SIAM '
        "Journal on Scientific and Statistical Computing 5(2):300-304",
        "doi:10.1137/0905021",
        "the slopes of the method `monotone_cubic`",
    ),
    Source(
        "Kendall (1945)",
        'M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3):239-251',
        "doi:10.1093/biomet/33.3.239",
        "tau-b of ranks in `what-if`",
    ),
    Source(
        "Wilson (1927)",
        'E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American '
        "Statistical Association 22(158):209-212",
        "doi:10.1080/01621459.1927.10502953",
        "the intervals of `calibration`",
    ),
    Source(
        "Jose, Nau and Winkler (2009)",
        'V. R. R. Jose, R. F. Nau and R. L. Winkler, "Sensitivity to distance and baseline distributions in forecast '
        'evaluation", Management Science 55(4):582-590',
        "doi:10.1287/mnsc.1080.0955",
        "the kernel `ordered_brier`",
    ),
    Source(
        "Stone (1961)",
        'M. Stone, "The Opinion Pool", The Annals of Mathematical Statistics 32(4):1339-1342',
        "doi:10.1214/aoms/1177704873",
        "the consensus `mean`",
    ),
    Source(
        "Gneiting and Raftery (2007)",
        'T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", Journal of the '
        "American Statistical Association 102(477):359-378",
        "doi:10.1198/016214506000001437",
        "the kernels `spherical` and `crps`",
    ),
    Source(
        "Gneiting, Balabdaoui and Raftery (2007)",
        'T. Gneiting, F. Balabdaoui and A. E. Raftery, "Probabilistic forecasts, calibration and sharpness", Journal '
        "of the Royal Statistical Society, Series B 69(2):243-268",
        "doi:10.1111/j.1467-9868.2007.00587.x",
        "the word sharpness, of `wis_parts` and of the picture `sharpness`",
    ),
    Source(
        "Bracher, Ray, Gneiting and Reich (2021)",
        'J. Bracher, E. L. Ray, T. Gneiting and N. G. Reich, "Evaluating epidemic forecasts in an interval format", '
        "PLOS Computational Biology 17(2):e1008618",
        "doi:10.1371/journal.pcbi.1008618",
        "the kernel `pinball`; `wis_parts`",
    ),
    Source(
        "hubverse, Documentation",
        'hubverse, Documentation: "Hub configuration files", "Model output", "Target (observed) data"; the schemas '
        "of the configuration, versions 2.0.0 to 6.0.0",
        "https://docs.hubverse.io",
        "`import-from hubverse`",
    ),
    Source(
        "hubverse, hubPredEvalsData",
        "hubverse, hubPredEvalsData 1.2.0: `generate_eval_data` and `generate_predevals_options`",
        "https://github.com/hubverse-org/hubPredEvalsData",
        "`export --format hubpredevals`",
    ),
    Source(
        "ForecastBench, Datasets",
        'ForecastBench, Datasets: question, forecast and resolution sets; wiki, "How to submit to ForecastBench"',
        "https://github.com/forecastingresearch/forecastbench-datasets",
        "`import-from forecastbench`",
    ),
    Source(
        "ForecastBench, leaderboards",
        "ForecastBench, the code of its leaderboards: `write_question_fixed_effects`",
        "https://github.com/forecastingresearch/forecastbench",
        "`export --format forecastbench`",
    ),
    Source(
        "Kalshi, API documentation",
        'Kalshi, API documentation: "Get Markets", "Get Events", "Get Trades", "Get Market Candlesticks", '
        '"Get Settlements", "Get Fills", "Get Positions"',
        "https://docs.kalshi.com",
        "`import-from kalshi`",
    ),
    Source(
        "Manifold, API documentation",
        'Manifold, API documentation: "GET /v0/market", "GET /v0/bets", "GET /v0/market/[marketId]/positions"; '
        "published code, `common/src/bet.ts`, `contract.ts`, `answer.ts`, `api/market-types.ts`, `redeem.ts`, "
        "`calculate.ts`, `contract-metric.ts`",
        "https://docs.manifold.markets/api",
        "`import-from manifold`",
    ),
    Source(
        "Polymarket, API documentation",
        'Polymarket, documentation: "Gamma Structure", "Get prices history", "Negative Risk Markets", "Resolution", '
        '"Get trades for a user or markets", "Get user activity", "Get current positions for a user", '
        '"Get closed positions for a user"',
        "https://docs.polymarket.com",
        "`import-from polymarket`",
    ),
    Source(
        "ForecastBench's leaderboard",
        "ForecastBench, the code of its leaderboard (src/leaderboard/main.py)",
        "https://github.com/forecastingresearch/forecastbench",
        "`least_share_ppm`; `payouts`; the preset `forecastbench`; the rows `[always-half]` and `[market]`; "
        "`adjusted_scores`: the Brier index",
    ),
    Source(
        "Bosse et al. (2023)",
        'N. I. Bosse et al., "Scoring epidemiological forecasts on transformed scales", PLOS Computational Biology '
        "19(8):e1011393",
        "doi:10.1371/journal.pcbi.1011393",
        "the transforms `log_shifted`, `log`, `log2`, `log10` and `sqrt`",
    ),
    Source(
        "Dawid (1984)",
        'A. P. Dawid, "Present position and potential developments: some personal views: statistical theory: the '
        'prequential approach", Journal of the Royal Statistical Society, Series A 147(2):278-292',
        "doi:10.2307/2981683",
        "`pit_counts`: the probability integral transform",
    ),
    Source(
        "Czado, Gneiting and Held (2009)",
        'C. Czado, T. Gneiting and L. Held, "Predictive model assessment for count data", Biometrics 65(4):1254-1261',
        "doi:10.1111/j.1541-0420.2009.01191.x",
        "`pit_counts`, `interval_coverage`: answers that the forecast itself puts probability on",
    ),
    Source(
        "scoringutils",
        "N. I. Bosse et al., scoringutils, reference: `interval_coverage`, and `get_pit_histogram` of quantiles",
        "https://epiforecasts.io/scoringutils/reference/",
        "`interval_coverage`: intervals with both ends; `pit_counts`: tenths without random numbers",
    ),
    Source(
        "Hamill (2001)",
        'T. M. Hamill, "Interpretation of rank histograms for verifying ensemble forecasts", Monthly Weather Review '
        "129(3):550-560",
        "doi:10.1175/1520-0493(2001)129<0550:IORHFV>2.0.CO;2",
        "`pit_counts`, `interval_coverage`: the place of an answer among samples",
    ),
    Source(
        "Jordan, Krüger and Lerch (2019)",
        'A. Jordan, F. Krüger and S. Lerch, "Evaluating probabilistic forecasts with scoringRules", Journal of '
        "Statistical Software 90(12)",
        "doi:10.18637/jss.v090.i12",
        "the kernel `pinball`: the CRPS of samples",
    ),
    Source(
        "Gneiting (2011)",
        'T. Gneiting, "Making and evaluating point forecasts", Journal of the American Statistical Association '
        "106(494):746-762",
        "doi:10.1198/jasa.2011.r10138",
        "the kernel `squared`",
    ),
    Source(
        "Dimitriadis, Gneiting and Jordan (2021)",
        'T. Dimitriadis, T. Gneiting and A. I. Jordan, "Stable reliability diagrams for probabilistic classifiers", '
        "PNAS 118(8)",
        "doi:10.1073/pnas.2016191118",
        "`corp`, `corp_blocks`, `corp_band`; the measure that `calibration_test` tests",
    ),
    Source(
        "Bröcker and Smith (2007)",
        'J. Bröcker and L. A. Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting '
        "22(3):651-661: outcomes drawn from the forecasts",
        "doi:10.1175/WAF993.1",
        "`calibration_test`, `corp_band`, `calibration_time_weighted`",
    ),
    Source(
        "Kaas, Dhaene and Goovaerts (2000)",
        'R. Kaas, J. Dhaene and M. J. Goovaerts, "Upper and lower bounds for sums of random variables", Insurance: '
        "Mathematics and Economics 27(2):151-168: terms that rise together",
        "doi:10.1016/S0167-6687(00)00060-3",
        "the tables of calibration: how the questions of a cluster come true",
    ),
    Source(
        "Ehm, Gneiting, Jordan and Krueger (2016)",
        'W. Ehm, T. Gneiting, A. Jordan and F. Krüger, "Of quantiles and expectiles: consistent scoring functions, '
        'Choquet representations and forecast rankings", Journal of the Royal Statistical Society, Series B '
        "78(3):505-562",
        "doi:10.1111/rssb.12154",
        "`murphy_curve`: elementary scores",
    ),
    Source(
        "Ayer et al. (1955)",
        'M. Ayer et al., "An empirical distribution function for sampling with incomplete information", Annals of '
        "Mathematical Statistics 26(4):641-647",
        "doi:10.1214/aoms/1177728423",
        "`corp`: pooling adjacent violators",
    ),
    Source(
        "Yates (1934)",
        'F. Yates, "The analysis of multiple classifications with unequal numbers in the different classes", Journal '
        "of the American Statistical Association 29(185):51-66",
        "doi:10.1080/01621459.1934.10502686",
        "`difficulty`: the fit in two ways",
    ),
    Source(
        "Sharpe (1994)",
        'W. F. Sharpe, "The Sharpe Ratio", The Journal of Portfolio Management 21(1):49-58',
        "doi:10.3905/jpm.1994.409501",
        "`sharpe_ratio` of `arena_leaderboard`",
    ),
    Source(
        "Karger et al. (2025)",
        'E. Karger et al., "ForecastBench: A Dynamic Benchmark of AI Forecasting Capabilities"',
        "arXiv:2409.19839",
        "`difficulty`, `adjusted_scores`, `adjusted_intervals`: Brier scores less the effects of questions",
    ),
    Source(
        "Cramer et al. (2022)",
        'E. Y. Cramer et al., "Evaluation of individual and ensemble probabilistic forecasts of COVID-19 mortality in '
        'the United States", PNAS 119(15): "Evaluation methodology"',
        "doi:10.1073/pnas.2113561119",
        "`relative_skill`",
    ),
    Source(
        "Bosse et al. (2022)",
        'N. I. Bosse et al., "Evaluating Forecasts with scoringutils in R"',
        "arXiv:2205.07090",
        "`relative_skill`: as scoringutils computes it",
    ),
    Source(
        "Hestenes and Stiefel (1952)",
        'M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems", Journal of '
        "Research of the National Bureau of Standards 49(6):409-436",
        "doi:10.6028/jres.049.044",
        "`difficulty`: estimates of what is missing",
    ),
    Source(
        "Wan (2006)",
        'Z. Wan, "An algorithm to solve integer linear systems exactly using numerical methods", Journal of Symbolic '
        "Computation 41(6):621-632",
        "doi:10.1016/j.jsc.2005.11.001",
        "`difficulty`: fractions from many digits",
    ),
    Source(
        "Doyle and Snell (1984)",
        'P. G. Doyle and J. L. Snell, "Random walks and electric networks", section 1.4: Rayleigh\'s monotonicity law',
        "arXiv:math/0001057",
        "`difficulty`: what the digits may be off by",
    ),
    Source(
        "Abramowitz and Stegun (1964)",
        'M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", formulas 26.2.11 and 26.7.8',
        "National Bureau of Standards, Applied Mathematics Series 55",
        "`intervals`: the share of a normal distribution",
    ),
    Source(
        "Efron (1979)",
        'B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1):1-26',
        "doi:10.1214/aos/1176344552",
        "`intervals`: questions are resampled",
    ),
    Source(
        "Efron and Tibshirani (1993)",
        'B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", chapter 13: percentile intervals',
        "ISBN 0-412-04231-2",
        "`intervals`: low and high",
    ),
    Source(
        "Hesterberg (2015)",
        'T. C. Hesterberg, "What teachers should know about the bootstrap: resampling in the undergraduate statistics '
        'curriculum", The American Statistician 69(4):371-386, section 4.1: expanded percentile intervals',
        "doi:10.1080/00031305.2015.1089789",
        "`intervals`: low and high with few clusters",
    ),
    Source(
        "Cohen (1988)",
        'J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, section 2.4: t tests',
        "ISBN 0-8058-0283-5",
        "`explain LOG pair`: the difference that can be told",
    ),
    Source(
        "Owen (2007)",
        'A. B. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2):386-411',
        "doi:10.1214/07-AOAS122",
        "`intervals`: clusters by two fields",
    ),
    Source(
        "Kish (1965)",
        'L. Kish, "Survey Sampling", chapters 5 and 8: the design effect of samples of clusters',
        "ISBN 0-471-10949-5",
        "`intervals`: the warning that questions look dependent",
    ),
    Source(
        "Cameron, Gelbach and Miller (2011)",
        'A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference with multiway clustering", Journal of '
        "Business & Economic Statistics 29(2):238-249",
        "doi:10.1198/jbes.2010.07136",
        "`pairwise`: the permutation test with clusters by two fields",
    ),
    Source(
        "Mogstad et al. (2023)",
        'M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference for ranks with applications to mobility '
        'across neighbourhoods and academic achievement across countries", Review of Economic Studies 91(1):476-518',
        "doi:10.1093/restud/rdad006",
        "`intervals`, `marginal_ranks`, `adjusted_intervals`: sets of ranks, with steps; `resolution`",
    ),
    Source(
        "Howard et al. (2021)",
        'S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence '
        'sequences", Annals of Statistics 49(2):1055-1080',
        "doi:10.1214/20-AOS1991",
        "`pairwise`: confidence sequences",
    ),
    Source(
        "Choe and Ramdas (2023)",
        'Y. J. Choe and A. Ramdas, "Comparing sequential forecasters", Operations Research, theorems 1 and 2, and '
        "their code comparecast: where the bounds are tightest",
        "doi:10.1287/opre.2021.0792",
        "`pairwise`: confidence sequences of differences of scores",
    ),
    Source(
        "Fisher (1935)",
        'R. A. Fisher, "The Design of Experiments", section 21: the signs of differences turned at random',
        "",
        "`pairwise`: the permutation test",
    ),
    Source(
        "Phipson and Smyth (2010)",
        'B. Phipson and G. K. Smyth, "Permutation p-values should never be zero", Statistical Applications in Genetics '
        "and Molecular Biology 9(1):39",
        "doi:10.2202/1544-6115.1585",
        "`pairwise`: the p-value counts what was observed as one permutation",
    ),
    Source(
        "Rump (2010)",
        'S. M. Rump, "Verification methods: Rigorous results using floating-point arithmetic", Acta Numerica '
        "19:287-449",
        "doi:10.1017/S096249291000005X",
        "`adjusted_intervals`: how far solutions in floats may be off",
    ),
    Source(
        "Westfall and Young (1993)",
        'P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", algorithm 2.8: the largest of the '
        "statistics that are left, step by step",
        "ISBN 0-471-55761-7",
        "`pairwise`: the p-value adjusted for all pairs; `marginal_ranks`: for the pairs of a participant",
    ),
    Source(
        "Diebold and Mariano (1995)",
        'F. X. Diebold and R. S. Mariano, "Comparing predictive accuracy", Journal of Business & Economic Statistics '
        "13(3):253-263",
        "doi:10.1080/07350015.1995.10524599",
        "`baseline_differences`: the test that two are equally good",
    ),
    Source(
        "Harvey, Leybourne and Newbold (1997)",
        'D. Harvey, S. Leybourne and P. Newbold, "Testing the equality of prediction mean squared errors", '
        "International Journal of Forecasting 13(2):281-291",
        "doi:10.1016/S0169-2070(96)00719-4",
        "`baseline_differences`: that test with few periods",
    ),
    Source(
        "Romano and Wolf (2005)",
        'J. P. Romano and M. Wolf, "Exact and approximate stepdown methods for multiple hypothesis testing", Journal '
        "of the American Statistical Association 100(469):94-108",
        "doi:10.1198/016214504000000539",
        "`pairwise`, `intervals`: signs turned at random, each pair's statistic divided by its own deviation",
    ),
    Source(
        "CFA Institute, Global Investment Performance Standards",
        'CFA Institute, "Global Investment Performance Standards (GIPS) for Firms 2020", "time-weighted return"',
        "https://www.cfainstitute.org",
        "`drawdown`: deposits are no gains",
    ),
    Source(
        "Magdon-Ismail and Atiya (2004)",
        'M. Magdon-Ismail and A. F. Atiya, "Maximum drawdown", Risk 17(10):99-102',
        "",
        "`drawdown`",
    ),
    Source(
        "Unicode 16.0",
        'The Unicode Consortium, "The Unicode Standard, Version 16.0", DerivedCoreProperties.txt',
        "https://www.unicode.org/Public/16.0.0/ucd/DerivedCoreProperties.txt",
        "characters that a new id may not have, because they cannot be seen",
    ),
    Source(
        "Unicode Technical Standard #39",
        'M. Davis and M. Suignard, "Unicode Security Mechanisms", section 4, Confusable Detection',
        "https://www.unicode.org/reports/tr39/",
        "`audit`: ids that look alike",
    ),
    Source(
        "Python Packaging Authority",
        'Python Packaging Authority, "Version specifiers"',
        "https://packaging.python.org/en/latest/specifications/version-specifiers/",
        "`require_version`: which of two versions is older",
    ),
    Source(
        "Apache Parquet",
        'Apache Parquet, "File Format" and parquet.thrift; Apache Thrift, "Thrift Compact Protocol"',
        "https://parquet.apache.org/docs/file-format/",
        "what a Parquet file says about its rows",
    ),
    Source(
        "Melnik and others (2010)",
        'S. Melnik and others, "Dremel: Interactive Analysis of Web-Scale Datasets", VLDB 3(1):330-339',
        "https://doi.org/10.14778/1920841.1920886",
        "`verify` of segments: the levels of nested columns in Parquet",
    ),
    Source(
        "AICPA, Audit Guide",
        'American Institute of Certified Public Accountants, Audit Guide "Audit Sampling"',
        "https://www.aicpa-cima.com",
        "`sample --by amount`: fixed intervals with a random start",
    ),
    Source(
        "Clopper and Pearson (1934)",
        'C. J. Clopper and E. S. Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the '
        'Binomial", Biometrika 26(4):404-413',
        "https://doi.org/10.1093/biomet/26.4.404",
        "the upper limit of the rate of error in a sample",
    ),
)
