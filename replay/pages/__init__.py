"""Pages: reports with pictures of boards, and the working papers of auditors."""
