"""Figures and HTML reports of studies; needs the extra ``study``."""

try:
    from contextgap.studies.report.figures import (
        history_comparison,
        pick_histogram,
        pick_shares,
        regret_curves,
        scale_panels,
        tuning_heat_map,
    )
    from contextgap.studies.report.page import Origin, Report, Section, save, versions, write_report
    from contextgap.studies.report.studies import beside, published
except ImportError as missing:
    raise ImportError(
        f"reports need {(missing.name or '').partition('.')[0]}; "
        "pip install 'contextgap[study]' brings it"
    ) from None

__all__ = [
    "Origin",
    "Report",
    "Section",
    "beside",
    "history_comparison",
    "pick_histogram",
    "pick_shares",
    "published",
    "regret_curves",
    "save",
    "scale_panels",
    "tuning_heat_map",
    "versions",
    "write_report",
]
